-- Removes a gate: its queue, its turn and what its guard remembers.
--
-- KEYS: state stream guard deadlines presence mark
-- ARGV: gate group channels force lease signal life remembered
--   channels is the start of a process's channel; force is 1 to remove a gate
--   that is held or waited for too; lease, signal and life (of the presence) are
--   in µs; remembered is how long, in µs, tokens from before stay refused.
-- Returns: a list: r removed, n there was none, u in use; the ticket of the turn,
--   or 0; how many wait; the last ticket issued, or 0.

local bad = mistyped('hash', 'stream', 'hash', 'zset', 'zset', 'string')
if bad then return bad end

local guarded = redis.call('HLEN', KEYS[3]) - redis.call('HEXISTS', KEYS[3], REMOVED)
if redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 and guarded == 0 then return {'n', '0', '0', '0'} end

local terms = {lease = tonumber(ARGV[5]), signal = tonumber(ARGV[6])}
local g = {
  state = KEYS[1], stream = KEYS[2], deadlines = KEYS[4], presence = KEYS[5], mark = KEYS[6],
  name = ARGV[1], group = ARGV[2], process_of_caller = '', life = tonumber(ARGV[7]), now = micros(),
}
redis.call('HDEL', g.state, '') -- allowed when memory is full
read(g, terms.lease)
local more = advance(g, terms)
local waiting = redis.call('XLEN', g.stream)
if g.holder ~= '' then waiting = math.max(0, waiting - 1) end
local answer = {'r', g.holder ~= '' and g.holder or '0', whole(waiting), whole(g.last)}
if ARGV[4] ~= '1' and (g.holder ~= '' or waiting > 0 or more) then
  save(g)
  signal(g, ARGV[3])
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
redis.call('UNLINK', g.state, g.stream, KEYS[3])
redis.call('ZREM', g.deadlines, g.name)
redis.call('HSET', KEYS[3], REMOVED, whole(math.min(g.last, math.max(g.now, mark_of(g)))))
redis.call('PEXPIRE', KEYS[3], whole(math.ceil(tonumber(ARGV[8]) / 1e3)))
signal(g, ARGV[3])
return answer
