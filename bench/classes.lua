-- bare.lua with a class for each timer: the rejected design of decision 24. Due timers are
-- moved into a set for each class, and claimed from the sets in the proportion of 9 to 1.
-- KEYS: timeline payloads due-0 due-1 classes
-- ARGV: now end want ids ...
-- Returns: the ids claimed, then their payloads.
if #ARGV > 3 then
  redis.call('ZREM', KEYS[1], unpack(ARGV, 4))
  redis.call('HDEL', KEYS[2], unpack(ARGV, 4))
end
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'WITHSCORES', 'LIMIT', '0', ARGV[3])
if #due > 0 then
  local ids, moved = {}, {{}, {}}
  for i = 1, #due, 2 do ids[#ids + 1] = due[i] end
  local classes = redis.call('HMGET', KEYS[5], unpack(ids))
  for i, id in ipairs(ids) do
    local list = moved[classes[i] == '1' and 2 or 1]
    list[#list + 1], list[#list + 2] = due[2 * i], id
  end
  for class = 1, 2 do
    if #moved[class] > 0 then redis.call('ZADD', KEYS[2 + class], unpack(moved[class])) end
  end
  redis.call('ZREM', KEYS[1], unpack(ids))
end
local ids = {}
for class = 1, 2 do
  local share = class == 1 and math.ceil(ARGV[3] * 0.9) or ARGV[3] - #ids
  local found = redis.call('ZRANGE', KEYS[2 + class], '0', share - 1)
  if #found > 0 then redis.call('ZREM', KEYS[2 + class], unpack(found)) end
  for _, id in ipairs(found) do ids[#ids + 1] = id end
end
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
