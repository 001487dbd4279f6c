-- What follows the claim of timers with keys: put after due_keys.lua. It notes which were
-- claimed, and writes the changes of their keys. Its functions are in a block, because what
-- is put after it needs none of them.

do
  -- unclaimed notes the due timers that were not claimed: those that the claim has
  -- dead-lettered, that have no payload, or that did not fit into the answer.
  local function unclaimed(claimed, now)
    local has, left, gone, kept, freed = {}, {}, {}, {}, {}
    for i = 2, #claimed, 2 do has[claimed[i]] = true end
    for _, id in ipairs(taken) do
      if not has[id] then left[#left + 1] = id end
    end
    local scores = collect('ZMSCORE', KEYS[1], left, 1, #left)
    for i, id in ipairs(left) do
      local list = scores[i] and kept or gone
      list[#list + 1] = id
      if not scores[i] then keyed.sleep(id) end
    end
    if key_rate then key_rate.refund(left) end
    remove(gone, freed)
    released(kept, {})
    wake(freed, now)
  end

  -- hold_back wakes the next timers of the keys that those who waited for a token held, and
  -- makes woken timers wait whose keys have no token: otherwise the next exchange does so.
  local function hold_back(now_text)
    wake(passes, number(now_text))
    keyed.write_due(now_text)
    local ids, last = {}, nil
    for id in pairs(firsts) do
      if not started[id] and not waits[id] then ids[#ids + 1] = id end
    end
    key_rate.load(ids)
    table.sort(ids, function(a, b) return entries[a] .. a < entries[b] .. b end)
    for _, id in ipairs(ids) do
      local key = key_in(entries[id])
      local state = state_of(key)
      if waits_turn(id, key, state, now_text) then
        unlink(key, place_in(entries[id]), id)
        hold(key, state, id)
        woken = woken - 1
        last = math.max(last or 0, waits[id])
      end
    end
    key_rate.write_waits(waits)
    key_rate.write()
    return last
  end

  -- note_key_runs notes which leases of an answer, which has them in this order, follow another of
  -- their key in a key run: the number of that one for each, 0 for none. It is nil without key runs.
  by_key.note_key_runs = key_run > 1 and function(ids)
    local list, last, any = {}, {}, false
    for i, entry in ipairs(read_entries(ids)) do
      local _, key = place_of(entry)
      list[i] = key and last[key] or 0
      any = any or list[i] > 0
      if key then last[key] = i end
    end
    if any then flow.key_runs = table.concat(list, ',') end
  end

  -- after notes which timers were claimed, and writes all changes. It returns until when
  -- timers become due of which other nodes are to learn, or nil.
  function by_key.after(claimed, leased, now_text)
    if #awake > 0 then
      for i = 2, #claimed, 2 do keyed.sleep(claimed[i]) end
    end
    if by_key.note_key_runs then
      local ids = {}
      for i = 2, #claimed, 2 do ids[i / 2] = claimed[i] end
      by_key.note_key_runs(ids)
    end
    if leased < #taken then unclaimed(claimed, number(now_text)) end
    if key_rate then flow.key_charges = key_rate.charges(claimed) end
    local last = key_rate and hold_back(now_text)
    keyed.write(now_text)
    if last and leased >= wanted then return last end -- this node may be busy then
    return woken > 0 and number(now_text) or nil
  end

  -- unfinished reports whether the next exchange has to look at keys that this one left.
  by_key.unfinished = keyed.unfinished

  -- head is the head of the timeline. If timers were parked and others are due, it is
  -- a little later: the poller then does not take the topic for one that cannot be claimed.
  -- If keys are left to look at, it is as soon.
  function by_key.head(h, now)
    if passed and h and h <= now or unfinished then return now + 1e-6 end
    return h
  end

  -- orphans reports whether there are keys of timers that no longer exist.
  function by_key.orphans(live) return redis.call('HLEN', KEYS[8]) > live end
end
