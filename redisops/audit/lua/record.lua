-- Adds an entry, or merges it with one of the newest 100. When the stream is almost
-- full, a caller with more than its share of it evicts its own oldest entries.
--
-- KEYS: audit
-- ARGV: cap share window merge operation name by via from detail error count call
--   cap, at least 200, is of the stream. share is how many entries of a run of a caller
--   (see below) may push out those of others. window is for how many ms after its
--   beginning an entry takes more of the same caller, operation and arguments. merge
--   is of which names: any; name, of the same; repeats, of the same if no other entry
--   of this name is between; or '', of none. call identifies the call: an equal one
--   among the newest 100 entries is not written again.
-- Returns: the id of the entry.

local bad = mistyped('stream')
if bad then return bad end

local NEWEST = 100

local function read(e)
  local entry = {id = e[1]}
  for i = 1, #e[2], 2 do entry[e[2][i]] = e[2][i + 1] end
  return entry
end

local function own(entry) return entry.by == ARGV.by and entry.via == ARGV.via end

local function alike(entry)
  return own(entry) and entry.operation == ARGV.operation and (entry.name == ARGV.name or ARGV.merge == 'any')
    and entry.from == ARGV.from and entry.detail == ARGV.detail and entry.error == ARGV.error
end

local window, now = tonumber(ARGV.window), clock() * 1000
local newest, merged, began -- the caller's newest entry, and the one to merge with
local merge = ARGV.merge ~= ''
for _, e in ipairs(redis.call('XREVRANGE', KEYS.audit, '+', '-', 'COUNT', NEWEST)) do
  local entry = read(e)
  if entry.call == ARGV.call then return entry.id end
  if not newest and own(entry) then newest = entry end
  if merge and alike(entry) then
    local since = entry.since ~= '' and entry.since or string.match(entry.id, '^%d+')
    if now - (tonumber(since) or 0) < window then merged, began, merge = entry, since, false end
  end
  if ARGV.merge == 'repeats' and entry.name == ARGV.name then merge = false end
end

-- The run of a caller is its entries between which there are never 100 of others. Its
-- newest entry has how many there are, and where to look for the oldest. A flood is one
-- run, so that it can be cut without an index of callers.
local length, oldest = 0, '-'
if newest then
  local n, from = string.match(newest.run or '', '^(%d+) (%d+%-%d+)$')
  length, oldest = tonumber(n) or 1, from or newest.id
end

local count, since = tonumber(ARGV.count), ''
if merged then
  count, since = count + (tonumber(merged.count) or 0), began
  redis.call('XDEL', KEYS.audit, merged.id)
else
  length = length + 1
  -- A flood leaves room for entries of others, which would push out the oldest. Two at
  -- most: one for this entry, and one to make room again.
  local room = tonumber(ARGV.cap) - NEWEST
  local over = math.min(redis.call('XLEN', KEYS.audit) + 1 - room, length - tonumber(ARGV.share), 2)
  if over > 0 then
    for _, e in ipairs(redis.call('XRANGE', KEYS.audit, oldest, '+', 'COUNT', NEWEST)) do
      oldest = e[1]
      if over > 0 and own(read(e)) then
        redis.call('XDEL', KEYS.audit, oldest)
        length, over = length - 1, over - 1
      end
      if over == 0 then break end
    end
  end
end

return redis.call('XADD', KEYS.audit, 'MAXLEN', '~', ARGV.cap, '*',
  'operation', ARGV.operation, 'name', ARGV.name, 'by', ARGV.by, 'via', ARGV.via, 'from', ARGV.from,
  'detail', ARGV.detail, 'error', ARGV.error, 'count', string.format('%.0f', count), 'since', since,
  'run', string.format('%.0f', length) .. ' ' .. oldest, 'call', ARGV.call)
