-- One step of a process at a gate: gives tickets back, joins, and does what is
-- due. A grant to the process is confirmed by it.
--
-- Parts: turns
-- KEYS: state stream exchange deadlines presence mark
-- ARGV: gate group process channels sequence floor lease signal life ops ...
--   channels is the start of a process's channel; floor is a ticket, lease,
--   signal and life (of the presence) are in µs; ops has a code for each
--   operation: j join, t try, g give, or p give of a turn that the process passed
--   on to the ticket itself; then comes its number (j, t) or its ticket (g, p).
-- Returns: one string of lines: now in µs; the ticket of the process that has the turn, or
--   0; how many µs its lease is good; 1 if there is more to do, else 0; the ticket
--   from which on all are of the process, or 0; then what became of each
--   operation: the ticket, or 0 (j, t); 1 if it was the turn, else 0 (g, p).

local bad = mistyped('hash', 'stream', 'string', 'zset', 'zset', 'string')
if bad then
  -- No process could do what is due at such a gate: it must not fill the list of
  -- those at which something is.
  redis.pcall('ZREM', KEYS.deadlines, ARGV.gate)
  return bad
end

local base = ARGV_NAMED
local process, sequence, ops = ARGV.process, tonumber(ARGV.sequence), ARGV.ops
local before, answered = string.match(redis.call('GET', KEYS.exchange) or '', '^(%d+)\n(.*)$')
before = integer(before)
if before == sequence then return answered end
if before and before > sequence then return redis.error_reply('STALE ' .. whole(before)) end

local terms = {lease = tonumber(ARGV.lease), signal = tonumber(ARGV.signal)}
local g = {
  state = KEYS.state, stream = KEYS.stream, deadlines = KEYS.deadlines, presence = KEYS.presence, mark = KEYS.mark,
  name = ARGV.gate, group = ARGV.group, process_of_caller = process, life = tonumber(ARGV.life), now = micros(),
}
-- The first write must be one that Redis allows when its memory is full: a turn
-- must be given back just then, and a ticket is small.
redis.call('HDEL', g.state, '')
read(g, terms.lease)
local highest = math.max(g.last, tonumber(ARGV.floor))
if highest + #ops >= EXACT and string.find(ops, '[jt]') then
  return redis.error_reply('EXHAUSTED ' .. whole(highest))
end

local out, present = {}, false

local function join(number_of)
  local owner = process .. '#' .. number_of
  local ticket = math.max(g.now, g.last + 1, tonumber(ARGV.floor) + 1)
  local added = redis.pcall('XADD', g.stream, entry(whole(ticket)), 'owner', owner)
  if type(added) == 'table' and added.err then -- the stream is ahead of the state
    ticket = math.max(ticket, top(g) + 1)
    redis.call('XADD', g.stream, entry(whole(ticket)), 'owner', owner)
  end
  if not present then
    shared(g.presence, g.now + g.life, process)
    present = true
  end
  g.last, g.changed = ticket, true
  if g.tail ~= process then g.tail, g.since = process, whole(ticket) end
  return whole(ticket)
end

local function give(ticket, passed)
  if passed and tonumber(ticket) > g.granted then
    g.granted, g.changed = tonumber(ticket), true
  end
  if g.holder == ticket then
    vacate(g)
    return '1'
  end
  redis.call('XDEL', g.stream, entry(ticket))
  return '0'
end

for i = 1, #ops do
  local op = string.sub(ops, i, i)
  if op == 'g' or op == 'p' then out[i] = give(ARGV[base + i], op == 'p') end
end
for i = 1, #ops do
  if string.sub(ops, i, i) == 'j' then out[i] = join(ARGV[base + i]) end
end
local more = advance(g, terms)
for i = 1, #ops do
  if string.sub(ops, i, i) == 't' then
    if g.holder == '' and not more then
      out[i] = join(ARGV[base + i])
      advance(g, terms)
    else
      out[i] = '0'
    end
  end
end

local held, good = '0', 0
if g.holder ~= '' and g.process == process then
  if g.kind == 'p' then hold(g, g.holder, g.owner, process, terms) end
  held, good = g.holder, g['until'] - g.now
end
save(g)
local since = g.tail == process and g.since or '0'
local answer = table.concat({whole(g.now), held, whole(good), more and '1' or '0', since, unpack(out)}, '\n')
redis.call('SET', KEYS.exchange, ARGV.sequence .. '\n' .. answer, 'PX', '120000')
signal(g, ARGV.channels)
return answer
