-- Replaces the payload of a timer, if it has not changed.
--
-- Parts: fence
-- KEYS: timeline payloads
-- ARGV: id old new
-- Returns: one letter: a absent, c changed, s replaced.

local bad = mistyped('zset', 'hash')
if bad then return bad end

local payload = redis.call('HGET', KEYS.payloads, ARGV.id)
if not payload or not redis.call('ZSCORE', KEYS.timeline, ARGV.id) then return 'a' end
if payload ~= ARGV.old then return 'c' end
redis.call('HSET', KEYS.payloads, ARGV.id, ARGV.new)
return 's'
