-- The claim of timers with keys: put after flow_keys.lua. It selects due ones, and parks the others.
--
-- Gives: waits_turn

-- verified reports whether a blocked key is free after all. Of a key with many holders
-- only a sweep finds out.
local checked = {}
local function verified(key, state, now)
  if not checked[key] and room > 0 then
    checked[key] = true
    local ids = holders(key, state, MANY)
    room = room - #ids
    keyed.verify(key, state, ids, now)
    if key_rate and not bounded then key_rate.release_running(key, state, waits) end
  end
  return free_of(state) > 0
end

local lines = {}     -- by key: its timers that an exchange looks at, in their order
local chosen, asleep = {}, {} -- those that it claims, and has parked: lines may have these as due
local ahead_of = {}  -- by key: how many of them were woken here, and are not claimed yet

local function begin_line(key)
  lines[key], ahead_of[key] = line_of(key, 1), 0
  return lines[key]
end

-- next_of returns the first timer of a key that may be claimed, when it is the turn of one
-- of them: its id, score and place. It wakes those before it that are parked, which take
-- their places later. It returns nil if there is none; a second result of true says that
-- there was no room to look at all. None of a key run is claimed before those that were woken here.
local function next_of(key, state, now)
  local line = lines[key] or begin_line(key)
  while ahead_of[key] < free_of(state) do
    local id, place, score = advance(line, now)
    if not id then return nil, not finished(line) end
    if unwritten[id] then score = text(now) end
    if not (keyed.parked(score) or asleep[id]) then
      if key_run > 1 and ahead_of[key] > 0 then return nil end
      entries[id] = place .. 'm' .. key
      return id, score, place
    end
    if make_due(key, place, id) then woken = woken + 1 end
    ahead_of[key] = ahead_of[key] + 1
  end
  return nil
end

-- in_turn reports whether a due timer is claimed in the order of its key. If not, it is
-- the first of its key, or its key has no bound, or was tried: then it is its turn.
local function in_turn(id, r)
  return not (limit == math.huge or firsts[id] and limit == 1 or r and r.tried)
end

-- WORK bounds how much an exchange does for the keys that its timers share, in timers that it
-- claims. One that it does not claim counts for PARKS, a key with many holders for one more,
-- and each CHECKED holders that are read too. What the settlements have done counts, but
-- leaves LEAST.
local WORK, PARKS, CHECKED, LEAST = 200, 0.35, 4, 60
local work = 0

-- exhausted reports whether the next exchange is to go on.
local function exhausted() return work + many_read >= WORK or room <= 0 end

-- read_lines reads the first timers of the keys of due timers, whose turn it may be, at once.
local function read_lines(shared, stored, scores, most)
  local list = {}
  for i, id in ipairs(shared) do
    if #list == most then break end
    local key = key_in(entries[id])
    local state = state_of(key)
    if not lines[key] and free_of(state) > 0 and not holds(key, state, id) and in_turn(id, current(stored[id], scores[i])) then
      list[#list + 1] = begin_line(key)
    end
  end
  if #list > 0 then read(list) end
end

-- put_in_line puts due timers of keys with several into the orders of their keys, at the
-- places of their instants. Stored has the lease records. Holders of which more run than may, since
-- the limit was lowered, and those that lapse, no longer hold their keys.
local function put_in_line(ids, scores, stored)
  local over = {}
  for i, id in ipairs(ids) do
    local key, place = key_in(entries[id]), place_in(entries[id])
    local state = state_of(key) or set_state(key, {held = {}})
    keyed.several(key, state)
    local r = current(stored[id], scores[i])
    local expired, ordered = r and r.state == 'l', in_turn(id, r)
    if over[key] == nil then over[key] = count_of(state) > limit end
    state.alone = state.alone or expired
    local open = not chosen[id] -- a later page may have a timer again that is to be claimed
    if open and expired and ordered and (over[key] or state.lapsed) then
      lapse(key, state, id)
    elseif open and over[key] then release(key, state, id) end
    if open and ordered and not holds(key, state, id) then
      local instant = not firsts[id] and number(r and r.activation or scores[i])
      if instant and instant > -math.huge and micros(instant) ~= string.sub(place, 1, 18) then
        move(key, place, id, instant)
      else
        link(key, place, id)
      end
      lines[key] = nil
    end
  end
end

-- admits returns which timer may be claimed when it is the turn of a due timer of a key
-- with several, and its score: the one that is due if it holds the key, else the first one
-- of the key, if there may be another. That one holds the key then. It returns nil if
-- there is none; the timer is in the order of its key then. A third result of true says
-- that the next exchange finds out.
local function admits(id, score, r, now)
  local e = entries[id]
  local key, place = key_in(e), place_in(e)
  local state = state_of(key)
  if holds(key, state, id) then return id, score end
  if free_of(state) > 0 or verified(key, state, now) then
    local first, at, later = id, score, nil
    if in_turn(id, r) then
      first, at, place = next_of(key, state, now)
      if not first then at, later = nil, at end
    end
    if first then
      unlink(key, place, first)
      if running_hold then hold(key, state, first) end
      return first, at
    end
    if later then return nil, nil, true end
  end
  link(key, place_in(entries[id]), id)
  return nil
end

-- READ bounds how many holders of a key an exchange reads to find those that wait.
local READ = 200

-- waiters returns the timers of a key that wait for a token, in their order: of each the
-- rank, and until when it waits. Of a key with more than READ holders it may lack some.
local waiting, WAITS = {}, byte('w')
local function waiters(key, state)
  local found = waiting[key]
  if found then return found end
  found = {}
  waiting[key] = found
  local all = holders(key, state, READ)
  work = work + #all / CHECKED
  local ids, records = {}, {}
  for i, stored in ipairs(collect('HMGET', KEYS[3], all, 1, #all)) do
    if stored and byte(stored) == WAITS then ids[#ids + 1], records[#ids + 1] = all[i], stored end
  end
  local places = collect('HMGET', KEYS[8], ids, 1, #ids)
  local scores = collect('ZMSCORE', KEYS[1], ids, 1, #ids)
  for i, id in ipairs(ids) do
    if scores[i] and place_of(places[i]) and waits_for_token(current(records[i], scores[i])) then
      found[#found + 1] = {id = id, rank = place_in(places[i]) .. id, at = number(scores[i])}
    end
  end
  table.sort(found, function(a, b) return a.rank < b.rank end)
  return found
end

-- note_waiter adds a timer to those of its key that wait.
local function note_waiter(id, key, state)
  local list, rank = waiters(key, state), place_in(entries[id]) .. id
  local i = #list
  while i > 0 and list[i].rank > rank do i = i - 1 end
  if i > 0 and list[i].id == id then
    list[i].at = waits[id]
  else
    table.insert(list, i + 1, {id = id, rank = rank, at = waits[id]})
  end
end

-- ahead returns how many timers of a key wait for a token before one, and until when. They
-- are due together or one after the other; a token that is there before is theirs too.
local function ahead(id, key, state)
  local n, last, own, list = 0, 0, place_in(entries[id]) .. id, waiters(key, state)
  while list[1] and started[list[1].id] do table.remove(list, 1) end
  for _, w in ipairs(list) do
    if w.rank >= own then break end
    if not started[w.id] then n, last = n + 1, math.max(last, w.at) end
  end
  return n, last
end

-- waits_turn makes a timer wait for a token and reports true, if its key has none for it.
local function waits_turn(id, key, state, score)
  local n, last = 0, 0
  if state then n, last = ahead(id, key, state) end
  if n == 0 and key_rate.tokens(key) >= 1 then return false end
  waits[id] = key_rate.wait(id, key, score, n, last)
  if state then note_waiter(id, key, state) end
  return true
end

-- starts takes a token for a due timer that may be claimed. If its key has none, the timer
-- holds its key until the next one, and starts returns false.
local function starts(id, score)
  local key, sole = key_in(entries[id]), is_sole(entries[id])
  local state = not sole and state_of(key)
  if waits_turn(id, key, state, score) then
    if state then hold(key, state, id) end
    passed = true
    return false
  end
  key_rate.take(key)
  started[id] = true
  if state then -- the next one may run beside it, if there is a place
    if not bounded then run_apart(key, state, id) end
    passes[key] = math.max(1, math.min(key_rate.tokens(key), BEYOND))
  end
  return true
end

-- park takes timers out of the due ones that are not chosen. Stored has records of some.
local function park(ids, scores, stored)
  if #ids == 0 then return end
  local parked, kept, lost = {}, {}, {}
  for i, id in ipairs(ids) do
    if unwritten[id] and not chosen[id] then -- it is parked still
      keyed.sleep(id)
      firsts[id], unwritten[id] = nil, nil
    elseif not chosen[id] then -- nor has a later timer of its key made it start
      if stored[id] == nil then stored[id] = redis.call('HGET', KEYS[3], id) end
      local r = current(stored[id], scores[i])
      parked[#parked + 1], parked[#parked + 2], asleep[id] = PARKED, id, true
      if r then
        kept[#kept + 1], kept[#kept + 2] = id, record('w', r, PARKED)
      elseif stored[id] then
        lost[#lost + 1] = id
      end
    end
  end
  variadic('ZADD', KEYS[1], parked, 1, #parked)
  parked_any = parked_any or #parked > 0
  variadic('HDEL', KEYS[3], lost, 1, #lost)
  variadic('HSET', KEYS[3], kept, 1, #kept)
  passed = true
end

-- read_records returns the stored lease records of timers by their ids. Those that were
-- woken here are the next of their keys, so nothing depends on their records.
local function read_records(ids)
  local unknown, stored = {}, {}
  for _, id in ipairs(ids) do
    if not firsts[id] then unknown[#unknown + 1] = id end
  end
  local found = collect('HMGET', KEYS[3], unknown, 1, #unknown)
  for i, id in ipairs(unknown) do stored[id] = found[i] end
  return stored
end

-- take adds up to want of the due timers with these ids, whose scores are in found, to
-- out, or those that come before them in the order of their keys. It parks those of shared
-- before them that may not be claimed. It returns how many of these ids stay due in Redis until
-- the claim is written. It stops when the work is exhausted.
local stopped = false
local function take(out, want, ids, found, shared, now)
  local stored, due_at, at = read_records(shared), {}, {} -- due_at: scores by id
  for i, id in ipairs(ids) do due_at[id] = found[2 * i] end
  for i, id in ipairs(shared) do at[i] = due_at[id] end
  put_in_line(shared, at, stored)
  read_lines(shared, stored, at, want - #out / 2)
  local parked, scores, left = {}, {}, 0
  for i, id in ipairs(ids) do
    while #out < 2 * want and not chosen[id] do
      local first, score, later = id, found[2 * i], nil
      if entries[id] and not is_sole(entries[id]) then -- put_in_line may have made it share its key
        stopped = exhausted()
        if stopped then break end
        first, score, later = admits(id, score, current(stored[id], score), now)
        work = work + (first and 1 or PARKS)
      end
      unfinished = unfinished or later
      if later then break end
      if not first then
        parked[#parked + 1], scores[#scores + 1] = id, found[2 * i]
        break
      end
      if chosen[first] then break end
      chosen[first] = true
      if not key_rate or not entries[first] or starts(first, score) then
        out[#out + 1], out[#out + 2] = first, score
      end
    end
    if #out == 2 * want or stopped then break end
  end
  unfinished = unfinished or stopped
  park(parked, scores, stored)
  if key_rate then key_rate.write_waits(waits) end
  for _, id in ipairs(ids) do left = left + ((asleep[id] or waits[id]) and 0 or 1) end
  return left
end

-- due returns the ids and scores of up to want due timers that may be claimed, and
-- parks those before them that may not.
function by_key.due(want, now, now_text)
  local out, looked, ask, left = {}, 0, want, 0
  wanted, room = want, ROOM -- what the settlements have not left would stop the claim
  work = math.min(0, WORK - LEAST - many_read)
  repeat
    local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now_text, 'WITHSCORES', 'LIMIT', left, ask)
    local ids = {}
    for i = 1, #found / 2 do ids[i] = found[2 * i - 1] end
    local read, last = read_entries(ids), #ids < ask
    if last then
      for i = 1, math.min(#awake, ask - #ids) do
        local n = #ids + 1
        ids[n], read[n] = awake[i], entries[awake[i]]
        found[2 * n - 1], found[2 * n] = awake[i], now_text
      end
    end
    if looked == 0 and not key_rate and all_sole(read) then
      taken = ids
      return found
    end
    local shared = note_shared(ids, read)
    if key_rate then key_rate.load(ids) end
    left = left + take(out, want, ids, found, shared, now)
    looked = looked + #ids
    ask = math.max(want - #out / 2, 200)
  until last or stopped or #out == 2 * want or looked >= LOOKED
  for i = 1, #out / 2 do taken[i] = out[2 * i - 1] end
  return out
end

-- record returns the lease record of a timer with that score that is claimed; nil: none.
-- Stored is the one in Redis, or false.
function by_key.record(stored, score, id)
  if unwritten[id] then return keyed.woken_record(id, stored) end
  return current(stored, score)
end
