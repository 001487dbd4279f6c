-- Marks of runs that were cancelled: put before the scripts that cancel. When the id of
-- such a run is scheduled again, its lease looks like that of a run that was replaced, which
-- goes on. cancelled_runs.lua reads the marks.
--
-- A mark is "token id", and its score is the token: when the lease expires. The member
-- 'all' has as its score when all timers of the topic were cancelled last.
--
-- Gives: mark_runs mark_all

-- KEEP is for how many seconds after the expiry of its lease a mark stays: an answer to the
-- lease's holder is checked after it was given.
local KEEP = 60

-- LONGEST is the longest time in seconds until a lease expires.
local LONGEST = 86400

-- live makes a key live for at least so many seconds.
local function live(key, seconds)
  local ms = math.ceil((math.min(math.max(seconds, 0), LONGEST) + KEEP) * 1000)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, string.format('%.0f', ms)) end
end

-- mark_runs marks runs by their ids and tokens. It removes at least as many old marks as
-- it adds, if there are so many.
local function mark_runs(key, ids, tokens, now)
  if #ids == 0 then return end
  local all = redis.call('ZSCORE', key, 'all')
  local old = redis.call('ZRANGEBYSCORE', key, all and '(' .. all or '-inf', text(now - KEEP), 'LIMIT', '0', 2 * #ids + 100)
  variadic('ZREM', key, old, 1, #old)
  local marks, latest = {}, now
  for i, id in ipairs(ids) do
    local token = number(tokens[i])
    marks[2 * i - 1], marks[2 * i] = text(token), text(token) .. ' ' .. id
    latest = math.max(latest, token)
  end
  variadic('ZADD', key, marks, 1, #marks)
  live(key, latest - now)
end

-- mark_all marks all runs that there are.
local function mark_all(key, now)
  redis.call('UNLINK', key)
  redis.call('ZADD', key, text(now), 'all')
  live(key, LONGEST)
end
