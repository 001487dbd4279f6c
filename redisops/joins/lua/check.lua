-- Sets when a join is checked next.
--
-- KEYS: joins
-- ARGV: join delay
--   delay: in seconds from now, '' for never.
-- Returns: 1, as a text.

local bad = mistyped('zset')
if bad then return bad end

if ARGV.delay == '' then
  redis.call('ZREM', KEYS.joins, ARGV.join)
else
  redis.call('ZADD', KEYS.joins, text(clock() + tonumber(ARGV.delay)), ARGV.join)
end
return '1'
