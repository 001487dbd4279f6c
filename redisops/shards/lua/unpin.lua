-- Ends what pin.lua began: the timers of a call are written.
--
-- KEYS: pins
-- ARGV: call ...
--   call: its token; then the fields of its timers and keys.
-- Returns: how many fields still have pins of others, as a text.

local bad = mistyped('hash')
if bad then return bad end

local shared, seen = 0, {}
local function unpin(i)
  local others = ''
  for at, call in string.gmatch(redis.call('HGET', KEYS.pins, ARGV[i]) or '', '(%S+) (%S+) ') do
    if call ~= ARGV.call then others = others .. at .. ' ' .. call .. ' ' end
  end
  if others == '' then
    redis.call('HDEL', KEYS.pins, ARGV[i])
  else
    shared = shared + 1
    redis.call('HSET', KEYS.pins, ARGV[i], others)
  end
end
for i = ARGV_NAMED + 1, #ARGV do
  if not seen[ARGV[i]] then unpin(i) end -- many timers may have one key
  seen[ARGV[i]] = true
end
redis.call('HDEL', KEYS.pins, 'c' .. ARGV.call)
-- Without pins, only when the last of them would have expired is left.
if redis.call('HLEN', KEYS.pins) == 1 then redis.call('HDEL', KEYS.pins, 'l') end
return string.format('%.0f', shared)
