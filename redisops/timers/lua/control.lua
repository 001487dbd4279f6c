-- Pauses, resumes or retunes a topic, and notifies its nodes.
--
-- KEYS: control hint
-- ARGV: action mark ...
--   action is pause, then the operator and the reason; resume; or tune, then the fields
--   and values of all overrides that are to apply; mark is a random word, for mark.lua.
-- Returns: the fields and values that are left.

local bad = mistyped('hash', 'string')
if bad then return bad end

local control, action = KEYS.control, ARGV.action
local base = ARGV_NAMED
local now_text = text(clock())

-- The first write must be one that Redis allows when its memory is full: a
-- topic can be paused just then.
redis.call('HDEL', control, '')
if action == 'pause' then
  redis.call('HSETNX', control, 'paused', now_text)
  redis.call('HSET', control, 'by', ARGV[base + 1], 'reason', ARGV[base + 2])
elseif action == 'resume' then
  redis.call('HDEL', control, 'paused', 'by', 'reason')
else
  for _, name in ipairs(redis.call('HKEYS', control)) do
    if name ~= 'paused' and name ~= 'by' and name ~= 'reason' and name ~= 'mark' then redis.call('HDEL', control, name) end
  end
  variadic('HSET', control, ARGV, base + 1, #ARGV)
end
if redis.call('HLEN', control) > redis.call('HEXISTS', control, 'mark') then
  redis.call('HSET', control, 'mark', ARGV.mark)
else
  redis.call('HDEL', control, 'mark') -- without it nothing is left
end
redis.pcall('PUBLISH', KEYS.hint, 'control ' .. now_text)
return redis.call('HGETALL', control)
