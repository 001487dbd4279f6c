-- Cancels every timer of a topic, leased ones included.
--
-- Parts: cancelled fence
-- KEYS: timeline payloads leases hint cancelled keys order busy
--   cancelled is timeline where runs are not marked.
-- ARGV: none
-- Returns: how many there were, as text.

local bad = mistyped('zset', 'hash', 'hash', 'string', 'zset', 'hash', 'zset', 'hash')
if bad then return bad end

local now = clock()
local count = redis.call('ZCARD', KEYS.timeline)
redis.call('UNLINK', KEYS.timeline, KEYS.payloads, KEYS.leases, KEYS.keys, KEYS.order, KEYS.busy)
if KEYS.cancelled ~= KEYS.timeline then mark_all(KEYS.cancelled, now) end
recheck(KEYS.hint, '', now)
return string.format('%.0f', count)
