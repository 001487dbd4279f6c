-- The claim of topics with FairKeys: put after fair_turns.lua. Keys take turns, in the order of
-- the queue. Due timers whose key has no turn yet are sorted: parked, many in an exchange.
--
-- Takes: verified lines chosen asleep WORK LEAST work exhausted put_in_line ahead starts park read_records

do
  local fair = by_key.fair

  -- SORTED is what a timer that is sorted counts, of the WORK of due_keys.lua, and TOUCHED what
  -- a key does of which the next timer has to be due. PAGE is how many timers are read at once,
  -- and SPARE how much of the room stays for what these bounds do not count. LEAST of the work
  -- stays for the timers that were sorted, and settlements leave SORTS besides.
  local SORTED, TOUCHED, PAGE, SPARE, SORTS = 0.14, 0.75, 250, 20, 30

  local now, now_text = 0, ''

  -- tired reports whether the rest of the work is for the timers that were sorted.
  local function tired()
    return work + many_read + TOUCHED * #fair.list >= WORK - LEAST or room <= #fair.list + SPARE
  end

  -- next_due returns the first due timer of a key, also if it is parked; or nil, and whether
  -- there was no room to look.
  local function next_due(key)
    local line = lines[key]
    if not line then
      line = line_of(key, 1)
      lines[key] = line
    end
    local id, place, score = advance(line, now)
    while id and chosen[id] do -- a peer had removed it, and it was scheduled again: one place is left of before
      unlink(key, place, id)
      id, place, score = advance(line, now)
    end
    if not id then return nil, not finished(line) end
    if (keyed.parked(score) or asleep[id]) and make_due(key, place, id) then
      awake[#awake + 1], unwritten[id], firsts[id] = id, true, true
    end
    entries[id] = place .. 'm' .. key
    return id, unwritten[id] and now_text or score, place
  end

  -- take_turn starts the timers of a key, from its turn at an instant on, and reports whether
  -- the key may have another turn. Out has timers and scores.
  local function take_turn(out, want, key, state, instant)
    repeat
      if free_of(state) <= 0 then return false end
      if exhausted() then
        unfinished = true
        return true
      end
      local id, score, place = next_due(key)
      if not id then
        unfinished = unfinished or score
        return score
      end
      -- Such a timer begins to wait for a token when it is written as due.
      if key_rate and unwritten[id] and (ahead(id, key, state) > 0 or key_rate.tokens(key) < 1) then return false end
      unlink(key, place, id)
      if running_hold then hold(key, state, id) end
      chosen[id], work = true, work + 1
      if key_rate and not starts(id, score) then return false end
      out[#out + 1], out[#out + 2] = id, score
    until fair.begins(id, key, instant) or #out == 2 * want
    return true
  end

  local held = {} -- due timers that held their keys when the others were put into the lines

  -- into_lines puts due timers into the lines of their keys. One without a record whose score is
  -- its place is there.
  local function into_lines(shared, scores, at, stored)
    local ids, texts = {}, {}
    for _, id in ipairs(shared) do
      local off = stored[id] == false and at[id] * 1e6 - (tonumber(string.sub(entries[id], 1, 18)) or 0)
      local state = off and off <= 1 and off >= -1 and state_of(key_in(entries[id]))
      if not chosen[id] and (not state or state.sole) then
        ids[#ids + 1], texts[#texts + 1] = id, scores[id]
      end
    end
    put_in_line(ids, texts, stored)
    for _, id in ipairs(ids) do
      local key = key_in(entries[id])
      held[id] = holds(key, state_of(key), id)
      if not held[id] then
        link(key, place_in(entries[id]), id)
        lines[key] = nil
      end
    end
  end

  -- read_lines reads the first timers of keys whose turn it may be, at once.
  local function read_lines(shared, at, most)
    local open = {}
    for _, id in ipairs(shared) do
      if #open >= most then break end
      local key = key_in(entries[id])
      if not lines[key] and at[id] >= fair.turn(key).at and not chosen[id] then
        local state = state_of(key)
        if free_of(state) > 0 and not holds(key, state, id) then
          lines[key] = line_of(key, 1)
          open[#open + 1] = lines[key]
        end
      end
    end
    if #open > 0 then read(open) end
  end

  -- look starts a due timer, or the first one of its key if it is its turn. It reports whether
  -- the timer is to be parked.
  local function look(out, want, id, score, instant)
    local entry = entries[id]
    if chosen[id] then return false end
    local key = entry and key_in(entry)
    local state = entry and not is_sole(entry) and state_of(key)
    if not state or holds(key, state, id) then
      chosen[id] = true
      if state then work = work + 1 end
      if not key_rate or not entry or starts(id, score) then
        out[#out + 1], out[#out + 2] = id, score
        if state then fair.begins(id, key, instant) end
      end
      return false
    end
    if held[id] then -- an earlier one of its key has started meanwhile: it is in its line from now on
      link(key, place_in(entry), id)
      lines[key] = nil
    end
    local more
    if instant >= fair.turn(key).at and (free_of(state) > 0 or verified(key, state, now)) then
      more = take_turn(out, want, key, state, instant)
      if chosen[id] or more and instant >= fair.turn(key).at then return false end
    end
    fair.touch(key)
    work = work + SORTED
    return true
  end

  -- settled are the timers that the settlements have woken, which are not written as due yet:
  -- each has an id and the instant of the turn of its key. Next_settled is the next of them.
  local settled, next_settled = {}, 1

  local function read_settled()
    fair.read(awake)
    for i, id in ipairs(awake) do
      local at = fair.turn(key_in(entries[id])).at
      settled[i] = {id = id, at = at > 0 and at or now}
    end
    table.sort(settled, function(a, b) return a.at < b.at or a.at == b.at and a.id < b.id end)
  end

  -- merged returns due timers with those of settled whose turn is before theirs, or all if
  -- there are no others. It adds to scores and at.
  local function merged(ids, last, scores, at)
    local list = {}
    local function add(before)
      while settled[next_settled] and settled[next_settled].at < before do
        local s = settled[next_settled]
        list[#list + 1], scores[s.id], at[s.id] = s.id, now_text, s.at
        next_settled = next_settled + 1
      end
    end
    for _, id in ipairs(ids) do
      add(at[id])
      list[#list + 1] = id
    end
    if last then add(math.huge) end
    return list
  end

  -- look_at looks at due timers, whose scores are in found, until enough start or it is tired,
  -- which it reports. The second result is how many of them stay due.
  local function look_at(out, want, ids, found, shared, last)
    local scores, at, parked, texts, kept, stopped = {}, {}, {}, {}, 0, false
    for i, id in ipairs(ids) do scores[id], at[id] = found[2 * i], number(found[2 * i]) end
    local stored = read_records(shared)
    into_lines(shared, scores, at, stored)
    read_lines(shared, at, math.min(want - #out / 2, (room - #fair.list - SPARE) / 3))
    for _, id in ipairs(merged(ids, last, scores, at)) do
      local written = not unwritten[id]
      stopped = #out < 2 * want and tired()
      if stopped or #out == 2 * want then break end
      if look(out, want, id, scores[id], at[id]) then
        parked[#parked + 1], texts[#texts + 1] = id, scores[id]
      elseif written and not waits[id] then
        kept = kept + 1
      end
    end
    for _, id in ipairs(parked) do -- a later timer of its key may have made it start
      if chosen[id] and not unwritten[id] and not waits[id] then kept = kept + 1 end
    end
    park(parked, texts, stored)
    if key_rate then key_rate.write_waits(waits) end
    return stopped, kept
  end

  -- go_round gives keys further turns, in their order, as long as timers are to start. If not
  -- all due timers were looked at, a key has one turn in the exchange, because another may be
  -- behind those that were not.
  local function go_round(out, want, all)
    local queue = {}
    for i, key in ipairs(fair.list) do
      local at = fair.turn(key).at
      queue[i] = {key = key, at = at > 0 and at or now}
    end
    table.sort(queue, function(a, b) return a.at < b.at or a.at == b.at and a.key < b.key end)
    local i = 1
    while queue[i] and #out < 2 * want and not exhausted() do
      local key, at, n = queue[i].key, queue[i].at, #out
      local state = (all or not fair.had[key]) and state_of(key)
      if state and not state.sole and take_turn(out, want, key, state, at) and all and #out > n then
        queue[#queue + 1] = {key = key, at = fair.turn(key).at}
      end
      i = i + 1
    end
    unfinished = unfinished or queue[i] ~= nil and #out < 2 * want
  end

  -- wake makes the next timers of keys due, one of each.
  wake = function(keys, instant)
    local open = {}
    for key in pairs(keys) do
      local state = state_of(key)
      if state and free_of(state) > 0 then open[#open + 1] = {key = key, most = 1, looks = 1, ask = 1} end
    end
    if #open == 0 then return end
    for _, id in ipairs(keyed.wake(open, instant)) do
      firsts[id], woken = true, woken + 1
      if not key_rate then awake[#awake + 1], unwritten[id] = id, true end
    end
  end

  -- due is that of due_keys.lua.
  function by_key.due(want, instant, instant_text)
    now, now_text = instant, instant_text
    local out, offset, ask, first = {}, 0, want, true
    local last, stopped, kept
    wanted, room, work = want, ROOM, math.min(0, WORK - LEAST - SORTS - many_read)
    fair.open(now, want)
    read_settled()
    repeat
      local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now_text, 'WITHSCORES', 'LIMIT', offset, ask)
      local ids = {}
      for i = 1, #found / 2 do ids[i] = found[2 * i - 1] end
      local entry = read_entries(ids)
      last = #ids < ask
      if first then
        fair.forget(found[2] and number(found[2]) or now)
        if not key_rate and #awake == 0 and all_sole(entry) then
          taken = ids
          return found
        end
      end
      local shared = note_shared(ids, entry)
      if key_rate then key_rate.load(ids) end
      fair.read(shared)
      stopped, kept = look_at(out, want, ids, found, shared, last)
      offset, ask, first = offset + kept, PAGE, false
    until last or stopped or #out == 2 * want
    unfinished = unfinished or stopped
    if #out < 2 * want then go_round(out, want, last and not stopped) end
    for i = 1, #out / 2 do taken[i] = out[2 * i - 1] end
    if key_rate then
      for _, key in ipairs(fair.list) do passes[key] = passes[key] or 1 end
    else
      wake(fair.touched, now)
    end
    return out
  end

  -- after is that of due_keys_after.lua.
  local after = by_key.after
  function by_key.after(claimed, leased, instant_text)
    if leased < #taken then fair.give_back(claimed) end
    local last = after(claimed, leased, instant_text)
    fair.write_late()
    fair.write()
    return last
  end
end
