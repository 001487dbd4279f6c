-- Replaces the layout of a topic, if it has not changed since it was read.
--
-- KEYS: shards
-- ARGV: topic before after
--   before: the layout that was read, '' for none; after: '' removes it.
-- Returns: the layout that is stored then, '' for none.

local bad = mistyped('hash')
if bad then return bad end

local shards, topic, before, after = KEYS.shards, ARGV.topic, ARGV.before, ARGV.after
local stored = redis.call('HGET', shards, topic) or ''
if stored ~= before or stored == after then return stored end
redis.call('HINCRBY', shards, '', 1)
if after == '' then
  redis.call('HDEL', shards, topic)
else
  redis.call('HSET', shards, topic, after)
end
return after
