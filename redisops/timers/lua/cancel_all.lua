-- Cancels every timer of a topic, leased ones included.
--
-- KEYS: timeline payloads leases hint keys order busy
-- ARGV: none
-- Returns: how many there were, as text.

local bad = mistyped('zset', 'hash', 'hash', 'string', 'hash', 'zset', 'hash')
if bad then return bad end

local count = redis.call('ZCARD', KEYS.timeline)
redis.call('UNLINK', KEYS.timeline, KEYS.payloads, KEYS.leases, KEYS.keys, KEYS.order, KEYS.busy)
recheck(KEYS.hint, '', clock())
return string.format('%.0f', count)
