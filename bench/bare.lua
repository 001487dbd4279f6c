-- Settles a batch and claims the next, and nothing else.
-- KEYS: timeline payloads
-- ARGV: now end want ids ...
-- Returns: the ids claimed, then their payloads.
if #ARGV > 3 then
  redis.call('ZREM', KEYS[1], unpack(ARGV, 4))
  redis.call('HDEL', KEYS[2], unpack(ARGV, 4))
end
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', '0', ARGV[3])
local n = #ids
if n == 0 then return {} end
local payloads = redis.call('HMGET', KEYS[2], unpack(ids))
local scores = {}
for i = 1, n do
  scores[2 * i - 1], scores[2 * i] = ARGV[2], ids[i]
end
redis.call('ZADD', KEYS[1], unpack(scores))
for i = 1, n do ids[n + i] = payloads[i] end
return ids
