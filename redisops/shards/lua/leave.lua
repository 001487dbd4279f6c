-- Begins the move of a topic to another Redis, or continues it.
--
-- Parts: fence
-- KEYS: index
-- ARGV: move life
--   move: the name of a new move; life: the ms for which the move can be continued.
-- Returns: the name of the move that has begun, which is another one if it was continued.

local bad = mistyped('hash')
if bad then return bad end

redis.call('HSETNX', KEYS.index, 'm', ARGV.move)
redis.call('PEXPIRE', KEYS.index, ARGV.life)
return redis.call('HGET', KEYS.index, 'm')
