-- Sets fields of a join, and how long it stays.
--
-- KEYS: join parts ends
-- ARGV: name life ...
--   name: of the join; life: in ms, '' leaves it; then fields and their values.
-- Returns: 1, or 0 if there is no such join, as a text.

local bad = mistyped('hash', 'zset', 'hash')
if bad then return bad end

if redis.call('HGET', KEYS.join, 'name') ~= ARGV.name then return '0' end
redis.call('HDEL', KEYS.join, '') -- allowed when memory is full, as after settle.lua
for i = ARGV_NAMED + 1, #ARGV, 2 do
  redis.call('HSET', KEYS.join, ARGV[i], ARGV[i + 1])
end
if ARGV.life ~= '' then
  redis.call('PEXPIRE', KEYS.join, ARGV.life)
  redis.call('PEXPIRE', KEYS.parts, ARGV.life)
  redis.call('PEXPIRE', KEYS.ends, ARGV.life)
end
return '1'
