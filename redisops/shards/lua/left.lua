-- Ends the move of a topic to another Redis, unless a batch or a part of a key has not
-- arrived.
--
-- KEYS: batches index
-- ARGV: move
--   move: its name.
-- Returns: 1 if it has ended, else 0; as a text.

local bad = mistyped('hash', 'hash')
if bad then return bad end

if redis.call('HLEN', KEYS.batches) > 0 or redis.call('HEXISTS', KEYS.index, 'p') == 1 then return '0' end
local noted = redis.call('HGET', KEYS.index, 'm')
if not noted or noted == ARGV.move then redis.call('UNLINK', KEYS.index) end
return '1'
