-- Revokes a turn for any caller, and passes it on.
--
-- Parts: turns
-- KEYS: state stream deadlines presence mark
-- ARGV: gate group channels ticket lease signal life
--   channels is the start of a process's channel; lease, signal and life (of the
--   presence) are in µs.
-- Returns: 1 if the ticket had the turn, else 0.

local bad = mistyped('hash', 'stream', 'zset', 'zset', 'string')
if bad then return bad end

local terms = {lease = tonumber(ARGV.lease), signal = tonumber(ARGV.signal)}
local g = {
  state = KEYS.state, stream = KEYS.stream, deadlines = KEYS.deadlines, presence = KEYS.presence, mark = KEYS.mark,
  name = ARGV.gate, group = ARGV.group, process_of_caller = '', life = tonumber(ARGV.life), now = micros(),
}
redis.call('HDEL', g.state, '') -- allowed when memory is full
read(g, terms.lease)
local had = g.holder ~= '' and g.holder == ARGV.ticket
if had then
  g.signals[g.process] = LOOK
  vacate(g)
end
advance(g, terms)
save(g)
signal(g, ARGV.channels)
return had and '1' or '0'
