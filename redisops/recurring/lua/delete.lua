-- Removes an entry of the schedule, whole, if its third field is the one that was
-- decided on.
--
-- KEYS: key key
--   the schedule and the hash of the entry.
-- ARGV: member ours
--   ours is the third field as it was found, empty for absent.
-- Returns: yes where there was one, no, or changed.

local bad = mistyped('zset', 'hash')
if bad then return bad end

local found = redis.call('HGET', KEYS[2], 'wakebell')
if found and found ~= ARGV.ours then return 'changed' end
local gone = redis.call('DEL', KEYS[2]) + redis.call('ZREM', KEYS[1], ARGV.member)
return gone > 0 and 'yes' or 'no'
