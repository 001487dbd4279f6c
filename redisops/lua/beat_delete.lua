-- Removes an entry of the schedule, whole.
--
-- KEYS: key key key
--   the schedule, the hash of the entry, and the set of those from a
--   configuration.
-- ARGV: member name
-- Returns: yes where there was one, else no.

local bad = mistyped('zset', 'hash', 'set')
if bad then return bad end

local gone = redis.call('DEL', KEYS[2]) + redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('SREM', KEYS[3], ARGV[2])
return gone > 0 and 'yes' or 'no'
