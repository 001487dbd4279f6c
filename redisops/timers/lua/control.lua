-- Pauses, resumes or retunes a topic, or ends a pause that is over, and notifies its nodes.
--
-- Parts: pause
-- KEYS: control hint
-- ARGV: action mark ...
--   action is pause, then the operator, the reason, the instant at which it ends, or '', and
--   after how many seconds it ends, or ''; resume; lift, which resumes if the pause
--   has ended by itself; or tune, then the fields and values of all overrides that are to
--   apply; mark is a random word, for mark.lua.
-- Returns: the fields and values that are left, and 'now' with the time; only 'over' and
--   the time if the pause would have ended already, and nothing has changed.

local bad = mistyped('hash', 'string')
if bad then return bad end

local control, action = KEYS.control, ARGV.action
local base = ARGV_NAMED
local now = clock()
local now_text = text(now)
local own = {paused = true, by = true, reason = true, mark = true}
own['until'] = true

local function reply()
  local all = redis.call('HGETALL', control)
  all[#all + 1], all[#all + 2] = 'now', now_text
  return all
end

local found = redis.call('HMGET', control, 'until', 'mark')
local ends = ends_of(found[1], found[2])
local over = ends ~= '' and number(ends) <= now
if action == 'pause' then
  ends = ARGV[base + 3]
  if ARGV[base + 4] ~= '' then ends = text(now + number(ARGV[base + 4])) end
  if ends ~= '' and number(ends) <= now then return {'over', now_text} end
elseif action == 'lift' and not over then
  return reply()
elseif action ~= 'tune' then
  ends = ''
end

-- The first write must be one that Redis allows when its memory is full: a
-- topic can be paused just then.
redis.call('HDEL', control, '', 'until')
if action == 'pause' then
  if over then redis.call('HDEL', control, 'paused') end -- this is another pause
  redis.call('HSETNX', control, 'paused', now_text)
  redis.call('HSET', control, 'by', ARGV[base + 1], 'reason', ARGV[base + 2])
elseif action ~= 'tune' then
  redis.call('HDEL', control, 'paused', 'by', 'reason')
else
  for _, name in ipairs(redis.call('HKEYS', control)) do
    if not own[name] then redis.call('HDEL', control, name) end
  end
  variadic('HSET', control, ARGV, base + 1, #ARGV)
end
if redis.call('HLEN', control) > redis.call('HEXISTS', control, 'mark') then
  redis.call('HSET', control, 'mark', ARGV.mark)
  if ends ~= '' then redis.call('HSET', control, 'until', ends .. ' ' .. ARGV.mark) end
else
  redis.call('HDEL', control, 'mark') -- without it nothing is left
end
redis.pcall('PUBLISH', KEYS.hint, 'control ' .. now_text)
return reply()
