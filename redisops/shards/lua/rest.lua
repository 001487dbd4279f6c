-- Finds out whether a physical topic rests: it has no timers, and no call is about to write
-- one there, so that none comes any more. It is asked twice, before and after the tokens of
-- its keys are copied. What pin.lua pins in between is noticed.
--
-- KEYS: timeline payloads moving leaving pins states order rates
-- ARGV: mark ends
--   mark: a token of the process that asks; ends: 0 the first time, 1 the second, which
--   removes what is left of keys: nothing is pinned because of them any more.
-- Returns: 1 if it rests, else 0; as a text.

local bad = mistyped('zset', 'hash', 'hash', 'hash', 'hash', 'hash', 'zset', 'zset')
if bad then return bad end

if redis.call('EXISTS', KEYS.timeline, KEYS.payloads, KEYS.moving, KEYS.leaving) > 0 then return '0' end
local last = redis.call('HGET', KEYS.pins, 'l') -- see pin.lua
if last and number(last) > clock() then return '0' end
if ARGV.ends == '0' then
  redis.call('HSET', KEYS.pins, 'r', ARGV.mark)
  redis.call('PEXPIRE', KEYS.pins, '86400000')
  return '1'
end
if redis.call('HGET', KEYS.pins, 'r') ~= ARGV.mark then return '0' end
redis.call('UNLINK', KEYS.pins, KEYS.states, KEYS.order, KEYS.rates)
return '1'
