-- Lifts the tickets of a gate above the tokens that its guard has seen, and
-- removes the tickets below: their owners join again. To be called again with the
-- next cursor until that is empty.
--
-- Parts: turns
-- KEYS: state stream guard deadlines presence mark
-- ARGV: gate group channels floor lease signal life clock cursor
--   channels is the start of a process's channel; floor is a token seen elsewhere,
--   or 0; lease, signal and life (of the presence) are in µs; clock is the
--   caller's, in µs; cursor is where in the guard to go on, at first 0.
-- Returns: a list: the last ticket issued before; the one from which tickets go on
--   now; how many tickets were removed; how many resources of the guard had a
--   token that no turn can have had; the next cursor, empty at the end.

local bad = mistyped('hash', 'stream', 'hash', 'zset', 'zset', 'string')
if bad then return bad end

local terms = {lease = tonumber(ARGV.lease), signal = tonumber(ARGV.signal)}
local g = {
  state = KEYS.state, stream = KEYS.stream, deadlines = KEYS.deadlines, presence = KEYS.presence, mark = KEYS.mark,
  name = ARGV.gate, group = ARGV.group, process_of_caller = '', life = tonumber(ARGV.life), now = micros(),
}
redis.call('HDEL', g.state, '') -- allowed when memory is full
read(g, terms.lease)

-- Tokens are instants at which they were issued. One that is above the last and
-- ahead of both clocks was not issued: it is no loss of data but poison, which
-- must not lift the gate.
local possible = math.max(g.last, math.max(g.now, tonumber(ARGV.clock)) + AHEAD)
local before, highest = g.last, tonumber(ARGV.floor)
local page = redis.call('HSCAN', KEYS.guard, ARGV.cursor, 'COUNT', '500')
local poisoned = {}
for i = 1, #page[2], 2 do
  local token = integer(page[2][i + 1])
  if token and token <= possible then
    highest = math.max(highest, token)
  else
    poisoned[#poisoned + 1] = page[2][i]
  end
end

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
local behind = redis.call('XRANGE', g.stream, '-', entry(whole(highest)), 'COUNT', '1000')
for _, e in ipairs(behind) do
  local ticket = string.match(e[1], '^%d+')
  if ticket ~= g.holder then
    redis.call('XDEL', g.stream, e[1])
    removed = removed + 1
    local process = string.match(e[2][2] or '', '^(.*)#%d+$')
    if process then g.signals[process] = LOOK end
  end
end
local lifted = math.max(g.last, highest, top(g))
if lifted > g.last or highest > g.granted then
  g.last, g.granted, g.changed = lifted, math.max(g.granted, highest), true
end
advance(g, terms)
save(g)
-- The turn may be used, and no turn before it.
local newest = g.holder ~= '' and g.holder or whole(g.last)
for _, resource in ipairs(poisoned) do redis.call('HSET', KEYS.guard, resource, newest) end
signal(g, ARGV.channels)
local cursor = page[1] ~= '0' and page[1] or ''
if #behind == 1000 then cursor = ARGV.cursor end
return {whole(before), whole(g.last), whole(removed), whole(#poisoned), cursor}
