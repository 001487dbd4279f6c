-- Letters: put after the prelude of the scripts that walk the dead letters.
--
-- Gives: field walk newest answered remember

-- field is a value of an entry, nil when it has none of that name.
local function field(values, name)
  for i = 1, #values - 1, 2 do
    if values[i] == name then return values[i + 1] end
  end
  return nil
end

-- walk visits the entries of a stream from one id to another, oldest first, whose
-- reason contains text and begins with prefix, and that were dead-lettered at least
-- older and at most newer µs ago ('' for no bound). It ends after limit visited
-- dead letters, 1,000 examined ones, or about max_bytes of them, but not before the
-- first. It returns where to continue, '' at the end. From may be '(' and an id, to
-- begin after it.
local function walk(key, from, upto, limit, max_bytes, match, visit)
  local now = clock()
  local seen, taken, bytes = 0, 0, 0
  if from == '-' and match.newer then -- none was added before it died
    from = string.format('%.0f', math.max(0, math.floor((now - match.newer / 1e6) * 1e3)))
  end
  while true do
    local entry = redis.call('XRANGE', key, from, upto, 'COUNT', 1)[1]
    if not entry then return '' end
    local id, values = entry[1], entry[2]
    for i = 1, #values do bytes = bytes + #values[i] end
    if taken == limit or seen == 1000 or (seen > 0 and bytes > max_bytes) then return from end
    from = '(' .. id
    seen = seen + 1
    -- The id of one that was moved or imported tells when that was.
    local died = number(field(values, 'at') or '') or tonumber(string.match(id, '^%d+')) / 1e3
    local age = (now - died) * 1e6
    local reason = field(values, 'reason') or ''
    if (not match.older or age >= match.older) and (not match.newer or age <= match.newer) and
      string.find(reason, match.text, 1, true) and
      string.sub(reason, 1, #match.prefix) == match.prefix then
      taken = taken + 1
      visit(id, values)
    end
  end
end

-- newest returns the id of the last entry, '0-0' if there is none. A walk that ends
-- there does not visit entries that are added meanwhile.
local function newest(key)
  local entry = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
  return entry and entry[1] or '0-0'
end

-- CALL_LIFE is how long the answer of a call is stored, in milliseconds.
local CALL_LIFE = '120000'

-- answered returns the stored answer of the call with this number, nil if there is
-- none. The client repeats a call whose reply was lost, and the repeated call
-- reports the effects of the first.
local function answered(key, call)
  local saved = redis.call('GET', key)
  local _, pos = string.find(saved or '', '^%d+\n')
  if not pos or string.sub(saved, 1, pos - 1) ~= call then return nil end
  local list = {}
  while pos < #saved do
    local _, stop, n = string.find(saved, '^(%d+) ', pos + 1)
    pos = stop + tonumber(n)
    list[#list + 1] = string.sub(saved, stop + 1, pos)
  end
  return list
end

-- remember keeps an answer, a list of strings, for answered.
local function remember(key, call, list)
  local parts = {call, '\n'}
  for _, v in ipairs(list) do
    parts[#parts + 1], parts[#parts + 2] = #v .. ' ', v
  end
  redis.call('SET', key, join(parts), 'PX', CALL_LIFE)
end
