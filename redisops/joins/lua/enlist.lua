-- Adds parts to a join, and makes it.
--
-- KEYS: join parts ends
-- ARGV: name life create limit ...
--   name: tells the join from an earlier one of its timer, '' for any; life: for how many ms
--   its keys stay at least; create: 1 makes the join, unless there is one with that name;
--   limit: the most parts; then the parts.
-- Returns: a code and the name of the join: o they are parts of it; a there is no such join;
--   c it is closed; f it would have too many parts. Nothing was added then.

local bad = mistyped('hash', 'zset', 'hash')
if bad then return bad end

local name = redis.call('HGET', KEYS.join, 'name')
if ARGV.create == '1' and name ~= ARGV.name then
  redis.call('UNLINK', KEYS.join, KEYS.parts, KEYS.ends)
  name = ARGV.name
  redis.call('HSET', KEYS.join, 'name', name, 'state', 'o')
  redis.call('PEXPIRE', KEYS.join, ARGV.life)
elseif ARGV.create == '1' then
  redis.call('HDEL', KEYS.join, 'ran') -- its timer is scheduled once more
end
if not name or ARGV.name ~= '' and name ~= ARGV.name then return 'a' end

local new, now = {}, clock()
local last = redis.call('ZRANGE', KEYS.parts, -1, -1, 'WITHSCORES')[2]
if last then now = math.max(now, (number(last) or 0) + 1e-6) end
for i = ARGV_NAMED + 1, #ARGV do
  if not redis.call('ZSCORE', KEYS.parts, ARGV[i]) then
    -- A microsecond each keeps their order.
    new[#new + 1] = text(now + #new / 2 * 1e-6)
    new[#new + 1] = ARGV[i]
  end
end
if #new > 0 then
  if redis.call('HGET', KEYS.join, 'state') ~= 'o' then return 'c' end
  if redis.call('ZCARD', KEYS.parts) + #new / 2 > tonumber(ARGV.limit) then return 'f' end
  variadic('ZADD', KEYS.parts, new, 1, #new)
end

local life = math.max(redis.call('PTTL', KEYS.join), tonumber(ARGV.life))
if life > 0 then
  life = string.format('%.0f', life)
  redis.call('PEXPIRE', KEYS.join, life)
  redis.call('PEXPIRE', KEYS.parts, life)
  redis.call('PEXPIRE', KEYS.ends, life)
end
return 'o' .. name
