-- Cancels every timer of a topic, leased ones included.
--
-- KEYS: timeline payloads leases hint
-- ARGV: none
-- Returns: how many there were, as text.

local bad = mistyped('zset', 'hash', 'hash', 'string')
if bad then return bad end

local count = redis.call('ZCARD', KEYS[1])
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
recheck(KEYS[4], '', clock())
return string.format('%.0f', count)
