-- Schedules a batch of timers; all of it or, when memory is full, nothing.
--
-- KEYS: timeline payloads leases hint
-- ARGV: policies ...
--   policies has one letter for each timer: r (replace) or k (keep); then come
--   the ids, the payloads, and the instants: seconds since 1970, or a delay in
--   µs from now after a '+'.
-- Returns: one string, for each timer "outcome due\n"; outcome is c created,
--   r replaced, s superseded, p kept pending, k kept running; due in seconds.

local bad = mistyped('zset', 'hash', 'hash', 'string')
if bad then return bad end

local timeline, payloads, leases = KEYS[1], KEYS[2], KEYS[3]
local now = clock()
local policies = ARGV[1]
local count = #policies
local base = 1

local scores = collect('ZMSCORE', timeline, ARGV, base + 1, base + count)
local records = collect('HMGET', leases, ARGV, base + 1, base + count)
local known = head(timeline) or math.huge
local lowest = math.huge
local bodies, scored, dropped, out = {}, {}, {}, {}

for i = 1, count do
  local id, score, at = ARGV[base + i], scores[i], ARGV[base + 2 * count + i]
  local due
  if string.sub(at, 1, 1) == '+' then
    due = now + tonumber(string.sub(at, 2)) / 1e6
  else
    due = tonumber(at)
  end
  local r = score and current(records[i], score)
  local outcome = 'c'
  -- A timeline entry without a payload counts as absent.
  if score and redis.call('HEXISTS', payloads, id) == 1 then
    local held = running(r, score, now)
    if string.sub(policies, i, i) == 'k' then
      outcome = held and 'k' or 'p'
      out[i] = outcome .. ' ' .. (r and r.activation or score) .. '\n'
    else
      outcome = held and 's' or 'r'
    end
  end
  if not out[i] then
    -- The score of a lease is its token: the new one must be another.
    if r and r.state == 'l' and due == number(score) then due = due + 1e-6 end
    local due_text = text(due)
    bodies[#bodies + 1], bodies[#bodies + 2] = id, ARGV[base + count + i]
    scored[#scored + 1], scored[#scored + 2] = due_text, id
    if records[i] then dropped[#dropped + 1] = id end
    lowest = math.min(lowest, due)
    out[i] = outcome .. ' ' .. due_text .. '\n'
  end
end

-- The first write is one that a full Redis refuses.
variadic('HSET', payloads, bodies, 1, #bodies)
variadic('ZADD', timeline, scored, 1, #scored)
variadic('HDEL', leases, dropped, 1, #dropped)
if lowest < known then announce(KEYS[4], lowest, now) end
return table.concat(out)
