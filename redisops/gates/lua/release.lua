-- Revokes a turn for any caller, and passes it on.
--
-- KEYS: state stream deadlines presence mark
-- ARGV: gate group channels ticket lease signal life
--   channels is the start of a process's channel; lease, signal and life (of the
--   presence) are in µs.
-- Returns: 1 if the ticket had the turn, else 0.

local bad = mistyped('hash', 'stream', 'zset', 'zset', 'string')
if bad then return bad end

local terms = {lease = tonumber(ARGV[5]), signal = tonumber(ARGV[6])}
local g = {
  state = KEYS[1], stream = KEYS[2], deadlines = KEYS[3], presence = KEYS[4], mark = KEYS[5],
  name = ARGV[1], group = ARGV[2], process_of_caller = '', life = tonumber(ARGV[7]), now = micros(),
}
redis.call('HDEL', g.state, '') -- allowed when memory is full
read(g, terms.lease)
local had = g.holder ~= '' and g.holder == ARGV[4]
if had then
  g.signals[g.process] = LOOK
  vacate(g)
end
advance(g, terms)
save(g)
signal(g, ARGV[3])
return had and '1' or '0'
