-- Replaces the layout of a topic, if it has not changed since it was read.
--
-- KEYS: shards
-- ARGV: topic before after version
--   before: the layout that was read, '' for none; version: a random number, so that a version that a failover has lost does not come back. An earlier
--   version of Wakebell adds 1 to it.
-- Returns: the layout that is stored then, '' for none.

local bad = mistyped('hash')
if bad then return bad end

local shards, topic, before, after = KEYS.shards, ARGV.topic, ARGV.before, ARGV.after
local stored = redis.call('HGET', shards, topic) or ''
if stored ~= before or stored == after then return stored end
redis.call('HSET', shards, '', ARGV.version)
redis.call('HSET', shards, topic, after)
return after
