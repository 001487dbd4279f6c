-- Replay: put before exchange.lua, after packed.lua.
--
-- Gives: body dead_key replay

-- letter reads a field of a dead letter; '' if it has been deleted.
local function letter(dead, entry, name)
  local found = redis.call('XRANGE', dead, entry, entry)[1]
  local values = found and found[2] or {}
  for i = 1, #values - 1, 2 do
    if values[i] == name then return values[i + 1] end
  end
  return ''
end

-- body reads a payload; nil if it is absent or too large.
local function body(payloads, id, max_payload)
  if redis.call('HSTRLEN', payloads, id) > max_payload then return nil end
  return redis.call('HGET', payloads, id) or nil
end

-- dead_key returns the key of a timer for its dead letter, or nil. Nodes learn some time after
-- the first timer with a key that there are such; the last but one of KEYS tells then.
local function dead_key(by_key, id)
  if by_key then return by_key.of(id) end
  local entry = redis.pcall('HGET', KEYS[#KEYS - 1], id)
  return type(entry) == 'string' and string.match(entry, '^' .. string.rep('%d', 33) .. '[ms](.+)$') or nil
end

local function unreadable()
  dead_count, deaths, kept = 0, {}, {}
  return nil
end

-- charges_of returns the charges of a stored answer for the leases of it that are held.
local function charges_of(stored, held)
  local all, list = {}, {}
  for charge in string.gmatch(stored, '[^,]+') do all[#all + 1] = charge end
  list[1] = all[1]
  for _, r in ipairs(held) do list[#list + 1] = all[1 + r.at] end
  return table.concat(list, ',')
end

-- replay returns the stored answer of the last exchange of the stream again. It reads
-- the claimed leases that are still held anew, and returns nil if the stored answer is
-- unreadable. Control is the mark of the settings.
local function replay(saved, now, timeline, payloads, leases, dead, max_payload, apart_from, control)
  local _, at, finish, healed, refused, size, dying, charges =
    string.find(saved, '^%d+\n(%S+) (%d+) (%d+) (%d+) (%d+) (%S+)\n')
  if not at then return nil end
  local refusals = string.sub(saved, at + 1, at + size)
  local ids, pos = {}, at + size + 1
  for _ = 1, tonumber(dying) do
    local _, stop, facts, index, entry, n, k = string.find(saved, '^((%S+) (%S+) %S+ %S+ %S+ %S+) (%d+) (%d+)\n', pos)
    if not stop then return unreadable() end
    local told = index == '-1' and letter(dead, entry, 'payload') or index == '-2' and letter(dead, entry, 'reason') or ''
    death(facts, string.sub(saved, stop + 1, stop + n), told, string.sub(saved, stop + n + 1, stop + n + k))
    pos = stop + n + k + 1
  end
  while pos <= #saved do
    local _, stop, n = string.find(saved, '^(%d+) ', pos)
    if not stop then return unreadable() end
    ids[#ids + 1] = string.sub(saved, stop + 1, stop + n)
    pos = stop + n + 1
  end
  local scores = collect('ZMSCORE', timeline, ids, 1, #ids)
  local records = collect('HMGET', leases, ids, 1, #ids)
  local held, bytes, empty = {}, 0, false
  for i, id in ipairs(ids) do
    local r = scores[i] and same(scores[i], finish) and current(records[i], scores[i])
    local size = r and redis.call('HSTRLEN', payloads, id)
    if r and size <= max_payload then
      r.id, r.at, bytes, empty = id, i, bytes + size, empty or size == 0
      held[#held + 1] = r
    end
  end
  apart = not empty and leaves_out(bytes, apart_from)
  local given = {}
  for _, r in ipairs(held) do
    local payload = apart and '' or redis.call('HGET', payloads, r.id)
    if payload then
      parts[p + 1] = length(r.id) .. length(payload) .. r.claims .. ' ' .. failures_of(r) .. ' ' .. r.activation .. '\n'
      parts[p + 2], parts[p + 3] = r.id, payload
      p = p + 3
      leased = leased + 1
      given[leased] = r.id
    end
  end
  if flow and flow.by_key and flow.by_key.note_key_runs then flow.by_key.note_key_runs(given) end
  if flow and charges ~= '-' then flow.charges = charges_of(charges, held) end
  local h = head(timeline)
  return answer(now, h, finish, healed, refused, refusals, '0', flow and flow.held(now, h) or '0', control)
end
