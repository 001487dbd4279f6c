-- Lifts the tickets of a gate above every token that its guard has seen, and
-- removes the tickets below: their owners join again.
--
-- KEYS: state stream guard deadlines presence
-- ARGV: gate group channels floor lease signal life
--   channels is the start of a process's channel; floor is a token seen elsewhere,
--   or 0; lease, signal and life (of the presence) are in µs.
-- Returns: a list: the last ticket issued before; the one from which tickets go on
--   now; how many tickets were removed.

local bad = mistyped('hash', 'stream', 'hash', 'zset', 'zset')
if bad then return bad end

local terms = {lease = tonumber(ARGV[5]), signal = tonumber(ARGV[6])}
local g = {
  state = KEYS[1], stream = KEYS[2], deadlines = KEYS[4], presence = KEYS[5],
  name = ARGV[1], group = ARGV[2], process_of_caller = '', life = tonumber(ARGV[7]), now = micros(),
}
redis.call('HDEL', g.state, '') -- allowed when memory is full
read(g, terms.lease)
local before, highest = g.last, tonumber(ARGV[4])
for _, seen in ipairs(redis.call('HVALS', KEYS[3])) do highest = math.max(highest, number(seen) or 0) end

local removed = 0
if g.holder ~= '' and tonumber(g.holder) <= highest then
  local holder = tonumber(g.holder)
  -- One that has written with the newest token itself is not behind.
  if holder < highest then
    g.signals[g.process] = LOOK
    vacate(g)
    removed = removed + 1
  end
end
for _, e in ipairs(redis.call('XRANGE', g.stream, '-', entry(whole(highest)))) do
  local ticket = string.match(e[1], '^%d+')
  if ticket ~= g.holder then
    redis.call('XDEL', g.stream, e[1])
    removed = removed + 1
    local process = string.match(e[2][2] or '', '^(.*)#%d+$')
    if process then g.signals[process] = LOOK end
  end
end
g.last, g.changed = math.max(g.last, highest, top(g)), true
advance(g, terms)
save(g)
signal(g, ARGV[3])
return {whole(before), whole(g.last), whole(removed)}
