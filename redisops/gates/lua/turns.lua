-- Turns: put before the scripts that change who has a gate's turn.
--
-- A ticket is a number of µs; the id of its entry in the stream is the number
-- and '-0'. The state says who has the turn: holder (the ticket, '' for none),
-- owner, process, kind (p provisional, h held), until (when the lease ends, in
-- µs) and lease (how long it was then); last is the last ticket issued, granted
-- the highest one that has had the turn. All tickets from since to last are of
-- the process tail; began is the ticket of the turn and when it began, in µs.
--
-- A state expires when its gate has been idle for a while. The mark, one key for
-- all gates, is what outlives it: the highest ticket of any gate. A gate that is
-- made anew goes on above the mark, so its tickets only grow. A ticket over a day
-- ahead of the clock does not move the mark, because one repaired gate must not
-- lift all others: the state of such a gate lives until the clock has passed it.
--
-- Gives: LOOK IN_USE SHARED AHEAD REMOVED micros whole entry mark_of top read lift_mark shared
--   save signal vacate hold advance

-- The consumer whose pending entry is the turn.
local HOLDER = 'holder'

-- What a signal says that grants nothing.
local LOOK = '0 0'

-- IDLE is how long, in µs, an idle gate is kept, and IN_USE how long one is kept
-- after its lease has ended and no process has looked at it.
local IDLE, IN_USE = 5 * 60e6, 7 * 86400e6

-- SHARED is how long, in ms, presence and deadlines outlive the last beat of any
-- process: longer than any gate in use. Only the mark is kept for ever.
local SHARED = '1209600000'

-- AHEAD bounds, in µs, how far ahead of the clock a ticket moves the mark.
local AHEAD = 86400e6

-- REMOVED is the field of the guard with the last ticket before the gate was
-- removed. No resource has this name.
local REMOVED = ''

-- DEAD_AT_ONCE bounds the dead tickets that one call passes over.
local DEAD_AT_ONCE = 1000

local function micros()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1e6 + tonumber(t[2])
end

local function whole(x) return string.format('%.0f', x) end

local function entry(ticket) return ticket .. '-0' end

-- A gate g has its keys (stream, state, deadlines, presence, mark), its name, the
-- group, the clock (now), the presence ttl (life), and the caller's process.
local FIELDS = {'last', 'granted', 'holder', 'owner', 'process', 'kind', 'until', 'lease', 'tail', 'since', 'began'}

local function mark_of(g) return integer(redis.call('GET', g.mark)) or 0 end

-- ticket_of is the ticket of an entry's id, nil where no gate has issued it.
local function ticket_of(id)
  local ticket = string.match(id, '^(%d+)%-0$')
  return (integer(ticket) or 0) > 0 and ticket or nil
end

-- top is the highest id that the stream has ever had.
local function top(g)
  local info = redis.pcall('XINFO', 'STREAM', g.stream)
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then return tonumber(string.match(info[i + 1], '^%d+') or 0) end
  end
  return 0
end

-- adopt makes up for a state that has expired, was lost or cannot be read: the
-- process with the pending entry keeps the turn for a lease, and tickets go on
-- above the highest, which is at least what of last and granted could be read.
local function adopt(g, lease, last, granted)
  g.last = math.max(top(g), mark_of(g), last or 0, granted or 0)
  g.holder, g.owner, g.process, g.kind = '', '', '', 'h'
  g['until'], g.lease, g.tail, g.since, g.granted, g.issued, g.began = 0, lease, '', '', g.last, g.last, ''
  local pending = redis.pcall('XPENDING', g.stream, g.group, '-', '+', '1')
  if not pending[1] then return end
  local found = redis.call('XRANGE', g.stream, pending[1][1], pending[1][1])[1]
  local ticket = ticket_of(pending[1][1])
  if not found or not ticket then
    redis.call('XACK', g.stream, g.group, pending[1][1])
    return
  end
  g.holder, g.owner = ticket, found[2][2]
  g.process = string.match(g.owner, '^(.*)#%d+$') or ''
  g['until'], g.granted, g.changed = g.now + lease, math.max(tonumber(ticket), granted or 0), true
end

-- read reads the state. What another program has made unreadable is healed: the
-- state is adopted anew where the tickets are, and an unreadable end or lease
-- gives the holder one lease more.
local function read(g, lease)
  local v = redis.call('HMGET', g.state, unpack(FIELDS))
  for i, field in ipairs(FIELDS) do g[field] = v[i] or '' end
  local last, holder, granted, ends = integer(g.last), integer(g.holder), integer(g.granted), integer(g['until'])
  g.signals, g.changed = {}, v[1] and not last or g.holder ~= '' and not holder
  if not last or g.holder ~= '' and (holder or 0) == 0 then return adopt(g, lease, last, granted) end
  g.last, g.issued, g.granted, g.lease = last, last, granted or holder or last, integer(g.lease) or lease
  g['until'], g.changed = ends or (holder and g.now + g.lease or 0), holder ~= nil and not ends
  if not integer(g.since) then g.tail, g.since = '', '' end
end

-- renew has the keys of a gate live on: as long as it is in use, or until a gate
-- made anew would issue tickets above its last one.
local function renew(g)
  local life = IN_USE + g['until'] - g.now
  if g.holder == '' then life = IDLE + math.max(0, g.last - g.now) end
  redis.call('PEXPIRE', g.state, whole(math.ceil(life / 1e3)))
  redis.call('PEXPIRE', g.stream, whole(math.ceil(life / 1e3)))
end

local function lift_mark(g)
  local mark = mark_of(g)
  if g.last > mark and g.last <= math.max(g.now, mark) + AHEAD then redis.call('SET', g.mark, whole(g.last)) end
end

-- began is the ticket of the turn and when it began. A ticket that the process of the
-- turn passed on to is new to the state.
local function began(g)
  if g.holder == '' or string.match(g.began, '^%d+') == g.holder then return g.began end
  return g.holder .. ' ' .. whole(g.now)
end

-- shared writes a member of a zset that all gates share. One that is new may be the first: if
-- all processes end before their next beat, no other call gives the key an end.
local function shared(key, score, member)
  if redis.call('ZADD', key, whole(score), member) == 1 then redis.call('PEXPIRE', key, SHARED) end
end

local function save(g)
  if g.changed then
    redis.call('HSET', g.state, 'last', whole(g.last), 'granted', whole(g.granted), 'holder', g.holder,
      'owner', g.owner, 'process', g.process, 'kind', g.kind, 'until', whole(g['until']),
      'lease', whole(g.lease), 'tail', g.tail, 'since', g.since, 'began', began(g))
    if g.last > g.issued then lift_mark(g) end
    renew(g)
  end
  if g.holder == '' then
    redis.call('ZREM', g.deadlines, g.name) -- also of a gate whose state has expired
  elseif g.changed then
    shared(g.deadlines, g['until'], g.name)
  end
end

-- signal tells processes what there is for them at the gate: the ticket that was
-- granted and until when the grant waits, or 0 and 0 to look for themselves. It
-- comes after all writes; a user without rights on the channel loses only time.
local function signal(g, channels)
  for process, what in pairs(g.signals) do
    redis.pcall('PUBLISH', channels .. process, what .. ' ' .. g.name)
  end
end

-- alive reports whether a process may be waited for. If no process has sent a
-- heartbeat for a while (Redis was down, or none was running), and for one life
-- after that, absence proves nothing.
local function alive(g, process)
  if process == g.process_of_caller then return true end
  local seen = redis.call('ZSCORE', g.presence, process)
  if seen and (number(seen) or 0) > g.now then return true end
  local last = redis.call('ZSCORE', g.presence, 'last')
  if not last or g.now - (number(last) or 0) > g.life / 2 then return true end
  local grace = redis.call('ZSCORE', g.presence, 'grace')
  return grace and (number(grace) or 0) > g.now
end

-- drop removes a ticket that was delivered to the holder.
local function drop(g, ticket)
  redis.call('XACK', g.stream, g.group, entry(ticket))
  redis.call('XDEL', g.stream, entry(ticket))
end

local function vacate(g)
  drop(g, g.holder)
  g.holder, g.owner, g.process, g.changed = '', '', '', true
end

-- following takes the next ticket off the queue: its entry's id and its owner.
local function following(g)
  local function ask()
    return redis.pcall('XREADGROUP', 'GROUP', g.group, HOLDER, 'COUNT', '1', 'STREAMS', g.stream, '>')
  end
  local found = ask()
  if found and found.err then -- the group is not there yet, or not any more
    if redis.call('EXISTS', g.stream) == 0 then return nil end
    redis.call('XGROUP', 'CREATE', g.stream, g.group, '0')
    found = ask()
  end
  if not found or not found[1] then return nil end
  local first = found[1][2][1]
  return first[1], first[2] and first[2][2] or ''
end

-- hold gives the turn to a ticket: for good if its process is the caller, which
-- gets the answer; provisionally if it must be notified.
local function hold(g, ticket, owner, process, terms)
  g.holder, g.owner, g.process, g.changed = ticket, owner, process, true
  g.granted = math.max(g.granted, tonumber(ticket))
  if process == g.process_of_caller then
    g.kind, g.lease = 'h', terms.lease
  else
    g.kind, g.lease = 'p', terms.signal
  end
  g['until'] = g.now + g.lease
  if g.kind == 'p' then g.signals[process] = ticket .. ' ' .. whole(g['until']) end
end

-- advance does what is due; true: there is more than one call does.
local function advance(g, terms)
  if g.holder ~= '' then
    if g['until'] - g.now > g.lease then -- the clock was set back
      g['until'], g.changed = g.now + g.lease, true
    end
    local confirms = g.kind == 'p' and g.process == g.process_of_caller
    if g['until'] > g.now or confirms then return false end
    g.signals[g.process] = LOOK
    vacate(g)
  end
  for _ = 1, DEAD_AT_ONCE do
    local id, owner = following(g)
    if not id then return false end
    local ticket, process = ticket_of(id), string.match(owner, '^(.*)#%d+$')
    if ticket and process and alive(g, process) then
      hold(g, ticket, owner, process, terms)
      return false
    end
    redis.call('XACK', g.stream, g.group, id)
    redis.call('XDEL', g.stream, id)
    if process then g.signals[process] = g.signals[process] or LOOK end
  end
  return true
end
