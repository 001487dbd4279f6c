-- Reads a page of the dead letters of a queue, the oldest first.
--
-- KEYS: dlq letters
-- ARGV: after limit max_bytes entry
--   after: how many to pass over; entry: only this one, '' for all.
-- Returns: how many to pass over for the next page, '' at the end, then for each
--   its entry, its payload, and its record, '' for none: "at claims id_bytes\n"
--   id reason.

local bad = mistyped('list', 'hash')
if bad then return bad end
local after, limit, max_bytes, entry = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

local start = after
local out, bytes, seen, step = {''}, 0, 0, 1
local nth = {} -- letters with the same payload share their records in order

local function record(hash, wanted)
  local records = redis.call('HGET', KEYS[2], hash) or ''
  local n, pos = 0, 1
  while pos <= #records do
    local name, at, claims, id, reason, from = string.match(string.sub(records, pos), RECORD_OF_LETTER)
    if not name then break end
    n = n + 1
    local body = pos + from - 1
    pos = body + tonumber(id) + tonumber(reason)
    if n == wanted then
      return name, at .. ' ' .. claims .. ' ' .. id .. '\n' .. string.sub(records, body, pos - 1)
    end
  end
  return hash, ''
end

-- passed counts the letters with this payload on the pages before. Few share
-- theirs, so few are counted.
local function passed(hash, payload)
  if start == 0 or select(2, record(hash, 2)) == '' then return 0 end
  return #redis.call('LPOS', KEYS[1], payload, 'RANK', -1, 'COUNT', 0, 'MAXLEN', start)
end

while seen < 1000 and bytes < max_bytes and #out < 1 + 3 * limit do
  local part = redis.call('LRANGE', KEYS[1], -after - step, -after - 1)
  for i = #part, 1, -1 do
    local payload = part[i]
    local hash = redis.sha1hex(payload)
    nth[hash] = (nth[hash] or passed(hash, payload)) + 1
    after, seen, bytes = after + 1, seen + 1, bytes + #payload
    local name, rest = record(hash, nth[hash])
    if entry == '' or entry == name then
      out[#out + 1], out[#out + 2], out[#out + 3] = name, payload, rest
    end
    if #out >= 1 + 3 * limit then break end
  end
  if #part < step then break end
  step = math.min(16, 2 * step)
end
out[1] = after < redis.call('LLEN', KEYS[1]) and whole(after) or ''
return out
