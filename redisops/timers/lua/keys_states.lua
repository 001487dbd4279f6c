-- The states of keys: put after keys.lua. Which timers hold a key, that is, may run.
--
-- The hash of states has a field for each key that has timers: 's' and the id of the sole
-- one; 'm' and the ids of its holders, each after its length; or 'x' if it has more than
-- MANY, which are members of the order then: 'h', the key, and the id. So each costs the
-- same, however many there are. The field '' counts schedules.
--
-- The 'm' is an 'l', and 'x' is 'lx', when one of several holders has lapsed: see lapse.
--
-- A key is closed while its timers move to another topic in several steps: 'c', until when,
-- a space, and 'm' or 'x' as above. No further timer of it starts, neither here nor there;
-- those that hold it go on. The last step opens it. If that never comes, a sweep does,
-- when the instant is over.
--
-- Gives: MANY states changed many_read set_member write_order holder runner read_states
--   state_of set_state count_of places_of close holds know spread hold release lapse run_apart holders
--   write_states forget_states

local MANY = 8
local CLOSED, LAPSED = string.byte('c'), string.byte('l')

local states = {}  -- by key, of those that were read; false: none; a text until it is used
local changed = {} -- the keys whose states are not written yet

local many_read = 0 -- how many states were read of keys with more than MANY holders

local touched, present = {}, {} -- members of the order that change, and whether they are in it then

-- set_member adds a member to the order or removes it, when write_order is called.
local function set_member(member, is)
  if present[member] == nil then touched[#touched + 1] = member end
  present[member] = is
end

local function write_order()
  if #touched == 0 then return end
  local added, gone = {}, {}
  for _, member in ipairs(touched) do
    if present[member] then
      added[#added + 1], added[#added + 2] = '0', member
    else
      gone[#gone + 1] = member
    end
  end
  touched, present = {}, {}
  variadic('ZREM', key_order, gone, 1, #gone)
  variadic('ZADD', key_order, added, 1, #added)
end

-- holder is the member of a timer that holds its key among many.
local function holder(key, id) return 'h' .. prefix_of(key) .. id end

-- runner is the member of a timer that has run, and is not settled, without holding its key,
-- because its topic has a rate limit per key and no bound on those that run, or because it
-- waits for its retry without its key. It keeps the others of its key where it is: see take.lua
-- and pin.lua of the shards.
local function runner(key, id) return 'r' .. prefix_of(key) .. id end

local function read_state(key, value)
  if string.byte(value) == SOLE then return {sole = string.sub(value, 2), held = {}} end
  if string.byte(value) == CLOSED then
    local at, rest = string.match(value, '^c(%S+) (.*)$')
    local state = read_state(key, rest or 'm')
    state.closed, state.spread = at, nil
    return state
  end
  local lapsed = string.byte(value) == LAPSED
  if value == 'x' or value == 'lx' then
    many_read = many_read + 1
    -- No member of its holders was touched before its state is known.
    local from = holder(key, '')
    return {many = redis.call('ZLEXCOUNT', key_order, '[' .. from, '(' .. from .. '\255'), known = {}, held = {}, spread = true, lapsed = lapsed}
  end
  local held, pos = {}, 2
  while pos <= #value do
    local _, stop, n = string.find(value, '^(%d+) ', pos)
    if not stop then break end
    held[#held + 1] = string.sub(value, stop + 1, stop + n)
    pos = stop + n + 1
  end
  return {held = held, lapsed = lapsed}
end

-- read_states reads the states of keys that were not read yet.
local function read_states(keys)
  local missing = {}
  for _, key in ipairs(keys) do
    if states[key] == nil then
      missing[#missing + 1] = key
      states[key] = false
    end
  end
  local found = collect('HMGET', key_states, missing, 1, #missing)
  for i, key in ipairs(missing) do states[key] = found[i] end
end

-- state_of returns the state of a key that was read: its sole timer, or those that hold
-- it, for the functions below; or false.
local function state_of(key)
  local state = states[key]
  if type(state) == 'string' then
    state = read_state(key, state)
    states[key] = state
  end
  return state
end

local function set_state(key, state)
  states[key], changed[key] = state, true
  return state
end

-- count_of returns how many timers hold a key.
local function count_of(state) return state.many or #state.held end

-- places_of returns how many more timers may hold a key, of at most limit.
local function places_of(state, limit)
  if state.closed then return 0 end
  return limit - count_of(state)
end

-- close closes a key until an instant; nil opens it.
local function close(key, state, at)
  state.closed, state.spread, changed[key] = at, nil, true
end

local function holds(key, state, id)
  if state.many then
    local known = state.known[id]
    if known == nil then
      known = redis.call('ZSCORE', key_order, holder(key, id)) and true or false
      state.known[id] = known
    end
    return known
  end
  for _, held in ipairs(state.held) do
    if held == id then return true end
  end
  return false
end

-- know reads at once which of these timers hold their keys among many; keys has the key of
-- each, or nil. It saves a command for each of them.
local function know(ids, keys)
  local asked, members = {}, {}
  for i, id in ipairs(ids) do
    local state = keys[i] and state_of(keys[i])
    if state and state.many and state.known[id] == nil then
      asked[#asked + 1], members[#members + 1] = {state.known, id}, holder(keys[i], id)
    end
  end
  for i, score in ipairs(collect('ZMSCORE', key_order, members, 1, #members)) do
    local known, id = asked[i][1], asked[i][2]
    known[id] = score and true or false
  end
end

-- spread makes the holders of a key members of the order.
local function spread(key, state)
  state.many, state.known = #state.held, {}
  for _, id in ipairs(state.held) do
    state.known[id] = true
    set_member(holder(key, id), true)
  end
  state.held = {}
end

-- hold makes a timer hold its key.
local function hold(key, state, id)
  if holds(key, state, id) then return end
  changed[key], state.lapsed = true, state.lapsed and count_of(state) > 0
  if state.many then
    state.many, state.known[id] = state.many + 1, true
    set_member(holder(key, id), true)
  else
    state.held[#state.held + 1] = id
    if #state.held > MANY then spread(key, state) end
  end
end

-- release makes a timer no longer hold its key, and reports whether it held it.
local function release(key, state, id)
  if state.many then
    if not holds(key, state, id) then return false end
    changed[key] = true
    state.many, state.known[id] = state.many - 1, false
    set_member(holder(key, id), false)
    return true
  end
  for i, held in ipairs(state.held) do
    if held == id then
      table.remove(state.held, i)
      changed[key] = true
      return true
    end
  end
  return false
end

-- lapse has a timer whose lease has expired give up its key, because more hold it than may: a
-- node has crashed with a key run, or the limit was lowered. The other holders lapse too
-- when theirs expire, so that all start in the order of the key, not in that in which their leases
-- expire. A timer of a key with as many holders as may keeps it, and starts before an earlier one
-- that was scheduled meanwhile.
local function lapse(key, state, id)
  if release(key, state, id) then state.lapsed, state.spread = true, nil end
end

-- run_apart makes a timer that runs no longer hold its key, so that others may run beside it.
local function run_apart(key, state, id)
  release(key, state, id)
  set_member(runner(key, id), true)
end

-- holders returns up to most of the timers that hold a key.
local function holders(key, state, most)
  local ids = {}
  if not state.many then
    for i = 1, math.min(#state.held, most) do ids[i] = state.held[i] end
    return ids
  end
  write_order()
  local from = holder(key, '')
  local found = redis.call('ZRANGEBYLEX', key_order, '[' .. from, '(' .. from .. '\255', 'LIMIT', '0', most)
  for i, member in ipairs(found) do ids[i] = string.sub(member, #from + 1) end
  return ids
end

-- gather makes the state of a key have its holders again, if they have become few.
local function gather(key, state)
  if not state.many or state.many > MANY / 2 then return end
  local ids = holders(key, state, MANY + 1)
  if #ids > MANY then return end
  for _, id in ipairs(ids) do set_member(holder(key, id), false) end
  state.held, state.many, state.known = ids, nil, nil
end

local function write_states()
  local set, dropped = {}, {}
  for key in pairs(changed) do
    local state = states[key]
    if state and not state.sole then gather(key, state) end
    local closed = state and state.closed and 'c' .. state.closed .. ' ' or ''
    if not state then
      dropped[#dropped + 1] = key
    elseif state.sole then
      set[#set + 1], set[#set + 2] = key, 's' .. state.sole
    elseif not state.many then
      local held = {closed, state.lapsed and #state.held > 0 and 'l' or 'm'}
      for _, id in ipairs(state.held) do held[#held + 1] = noted(id) end
      set[#set + 1], set[#set + 2] = key, table.concat(held)
    elseif not state.spread then
      set[#set + 1], set[#set + 2] = key, closed .. (state.lapsed and 'lx' or 'x')
    end
    if state then state.spread = state.many ~= nil end
  end
  changed = {}
  variadic('HDEL', key_states, dropped, 1, #dropped)
  variadic('HSET', key_states, set, 1, #set)
end

-- forget_states removes what is left of the keys when no timer has one: there are no entries,
-- or only those of timers that are gone.
local function forget_states(payloads)
  if redis.call('HLEN', key_states) > redis.call('HEXISTS', key_states, '') then return end
  if redis.call('EXISTS', key_of) == 0 or redis.call('EXISTS', key_timeline, payloads) == 0 then
    redis.call('UNLINK', key_of, key_states, key_order)
  end
end

-- lapse_all puts up to most holders of a key whose leases have expired into its order, and writes
-- that, where they are many, so that their ids would decide, or others have lapsed. A move does so.
function keyed.lapse_all(key, state, most)
  if not (state.many or state.lapsed) then return end
  local ids = holders(key, state, most)
  local scores, records = collect('ZMSCORE', key_timeline, ids, 1, #ids), collect('HMGET', key_leases, ids, 1, #ids)
  for i, entry in ipairs(collect('HMGET', key_of, ids, 1, #ids)) do
    local r, place = current(records[i], scores[i]), place_of(entry)
    if place and r and r.state == 'l' and not r.tried then
      lapse(key, state, ids[i])
      set_member(prefix_of(key) .. place .. ids[i], true)
    end
  end
  write_states()
  write_order()
end
