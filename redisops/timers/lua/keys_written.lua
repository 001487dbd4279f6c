-- Timers with keys that were written or have ended: put after keys_order.lua, before
-- the scripts that do not claim.

-- BEYOND is how many timers of a key that are due already wake_freed may pass over: they
-- may have been free to run before, as a running timer that was scheduled again.
local BEYOND = 16

-- wake_freed wakes as many timers of each key as it was freed of, and reports whether a
-- poller should look.
local function wake_freed(freed, now_text)
  local list = {}
  for key, count in pairs(freed) do list[#list + 1] = {key = key, most = count, looks = count + BEYOND, ask = count} end
  keyed.wake(list, number(now_text))
  keyed.write(now_text)
  return woken_here > 0 or keyed.unfinished()
end

-- take_out removes the timers of a list from those of the keys that they had, and returns
-- how many that frees of each key.
local function take_out(list)
  local freed, ids, keys = {}, {}, {}
  for i, t in ipairs(list) do ids[i], keys[i] = t.id, t.old end
  know(ids, keys)
  for _, t in ipairs(list) do
    if t.old then
      keyed.remove(t.old, t.place, t.id)
      if not keyed.parked(t.score) then freed[t.old] = (freed[t.old] or 0) + 1 end
    end
  end
  return freed
end

-- write_entries writes the entries of a list of timers that were scheduled.
local function write_entries(list)
  local written, seen = {}, {}
  local number_of = redis.call('HINCRBY', key_states, '', #list) - #list
  for i, t in ipairs(list) do
    t.place = micros(t.instant) .. string.format('%015.0f', number_of + i)
    local sole = not states[t.key] and not seen[t.key]
    seen[t.key] = true
    written[2 * i - 1], written[2 * i] = t.id, t.place .. (sole and 's' or 'm') .. t.key
  end
  variadic('HSET', key_of, written, 1, #written)
end

-- schedule notes timers that were written: for each id, key, instant, and the entry and
-- the score that the id had, or false; a key of nil is that of the entry. It reports
-- whether a poller should look, because timers were woken.
function keyed.schedule(list, now_text)
  if #list == 0 then return false end
  local keys = {}
  for _, t in ipairs(list) do
    t.place, t.old = place_of(t.entry)
    t.key = t.key or t.old
    keys[#keys + 1] = t.key
    if t.old then keys[#keys + 1] = t.old end
  end
  read_states(keys)
  local freed = take_out(list)
  write_entries(list)
  for _, t in ipairs(list) do
    local state = state_of(t.key)
    if not state then
      set_state(t.key, {sole = t.id, held = {}})
    elseif state.sole ~= t.id then
      keyed.several(t.key, state)
      link(t.key, t.place, t.id)
    end
  end
  return wake_freed(freed, now_text)
end

-- ended notes timers that are gone from the timeline, where they had these scores, and
-- reports whether a poller should look, because timers were woken.
function keyed.ended(ids, scores, now_text)
  if redis.call('EXISTS', key_of) == 0 then return false end
  local found, list, keys, gone = collect('HMGET', key_of, ids, 1, #ids), {}, {}, {}
  for i, id in ipairs(ids) do
    local place, key = place_of(found[i])
    if place then
      list[#list + 1] = {id = id, place = place, old = key, score = scores[i]}
      keys[#keys + 1], gone[#gone + 1] = key, id
    end
  end
  read_states(keys)
  local freed = take_out(list)
  variadic('HDEL', key_of, gone, 1, #gone)
  return wake_freed(freed, now_text)
end
