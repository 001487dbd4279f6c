-- Removes a gate: its queue, its turn and what its guard remembers.
--
-- Parts: turns
-- KEYS: state stream guard deadlines presence mark holds
-- ARGV: gate group channels force lease signal life remembered
--   channels is the start of a process's channel; force is 1 to remove a gate
--   that is held or waited for too; lease, signal and life (of the presence) are
--   in µs; remembered is how long, in µs, tokens from before stay refused.
-- Returns: a list: r removed, n there was none, u in use; the ticket of the turn,
--   or 0; how many wait; the last ticket issued, or 0.

local bad = mistyped('hash', 'stream', 'hash', 'zset', 'zset', 'string', 'hash')
if bad then return bad end

local guarded = redis.call('HLEN', KEYS.guard) - redis.call('HEXISTS', KEYS.guard, REMOVED)
if redis.call('EXISTS', KEYS.state, KEYS.stream) == 0 and guarded == 0 then return {'n', '0', '0', '0'} end

local terms = {lease = tonumber(ARGV.lease), signal = tonumber(ARGV.signal)}
local g = {
  state = KEYS.state, stream = KEYS.stream, deadlines = KEYS.deadlines, presence = KEYS.presence, mark = KEYS.mark,
  name = ARGV.gate, group = ARGV.group, process_of_caller = '', life = tonumber(ARGV.life), now = micros(),
}
redis.call('HDEL', g.state, '') -- allowed when memory is full
read(g, terms.lease)
local more = advance(g, terms)
local waiting = redis.call('XLEN', g.stream)
if g.holder ~= '' then waiting = math.max(0, waiting - 1) end
local answer = {'r', g.holder ~= '' and g.holder or '0', whole(waiting), whole(g.last)}
if ARGV.force ~= '1' and (g.holder ~= '' or waiting > 0 or more) then
  save(g)
  signal(g, ARGV.channels)
  answer[1] = 'u'
  return answer
end

if g.holder ~= '' then g.signals[g.process] = LOOK end
-- Those that are not told find out when they check their places.
for _, e in ipairs(redis.call('XRANGE', g.stream, '-', '+', 'COUNT', '100')) do
  local process = string.match(e[2][2] or '', '^(.*)#%d+$')
  if process then g.signals[process] = LOOK end
end
lift_mark(g)
redis.call('UNLINK', g.state, g.stream, KEYS.guard, KEYS.holds)
redis.call('ZREM', g.deadlines, g.name)
redis.call('HSET', KEYS.guard, REMOVED, whole(math.min(g.last, math.max(g.now, mark_of(g)))))
redis.call('PEXPIRE', KEYS.guard, whole(math.ceil(tonumber(ARGV.remembered) / 1e3)))
signal(g, ARGV.channels)
return answer
