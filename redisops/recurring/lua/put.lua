-- Writes an entry of the schedule, if its bytes are those that were decided on.
--
-- KEYS: key key
--   the schedule and the hash of the entry.
-- ARGV: member definition meta ours new_definition new_meta new_ours score hint
--   the fields as they were found, empty for absent, and as they are to be; hint
--   is a channel to notify.
-- Returns: ok, or changed.

local bad = mistyped('zset', 'hash')
if bad then return bad end

local found = redis.call('HMGET', KEYS[2], 'definition', 'meta', 'wakebell')
for n = 1, 3 do
  if (found[n] or '') ~= ({ARGV.definition, ARGV.meta, ARGV.ours})[n] then return 'changed' end
end
redis.call('HSET', KEYS[2], 'definition', ARGV.new_definition, 'meta', ARGV.new_meta)
if ARGV.new_ours == '' then
  redis.call('HDEL', KEYS[2], 'wakebell')
else
  redis.call('HSET', KEYS[2], 'wakebell', ARGV.new_ours)
end
redis.call('ZADD', KEYS[1], ARGV.score, ARGV.member)
redis.pcall('PUBLISH', ARGV.hint, 'changed')
return 'ok'
