-- Ends the move of a topic to another Redis, unless a batch has not arrived.
--
-- KEYS: batches index
-- ARGV: move
--   move: its name.
-- Returns: 1 if it has ended, 0 if a batch has not arrived; as a text.

local bad = mistyped('hash', 'hash')
if bad then return bad end

if redis.call('HLEN', KEYS.batches) > 0 then return '0' end
local noted = redis.call('HGET', KEYS.index, 'm')
if not noted or noted == ARGV.move then redis.call('UNLINK', KEYS.index) end
return '1'
