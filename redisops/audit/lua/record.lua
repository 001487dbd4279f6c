-- Adds an entry, or merges it with the newest one of the same operation.
--
-- KEYS: audit
-- ARGV: cap window any operation name by via from detail error count call
--   window is for how many ms after its beginning the newest entry takes more; 0
--   never merges. any, unless '', merges entries of different names. call identifies
--   the call: an equal one among the newest 100 entries is not written again.
-- Returns: the id of the entry.

local bad = mistyped('stream')
if bad then return bad end

local NAME = 4
local fields = {'operation', ARGV.operation, 'name', ARGV.name, 'by', ARGV.by, 'via', ARGV.via,
  'from', ARGV.from, 'detail', ARGV.detail, 'error', ARGV.error}
local count, since = tonumber(ARGV.count), ''
local last = redis.call('XREVRANGE', KEYS.audit, '+', '-', 'COUNT', 100)
for _, e in ipairs(last) do
  local all = #e[2]
  if e[2][all - 1] == 'call' and e[2][all] == ARGV.call then return e[1] end
end
local newest = tonumber(ARGV.window) > 0 and last[1]
if newest then
  local size = #newest[2] - #fields
  local equal = size == 4 or size == 6 -- without or with its call
  for i, value in ipairs(fields) do
    equal = equal and (newest[2][i] == value or (i == NAME and ARGV.any ~= ''))
  end
  if equal then
    local began = newest[2][#fields + 4]
    if began == '' then began = string.match(newest[1], '^%d+') end
    if clock() * 1000 - (tonumber(began) or 0) < tonumber(ARGV.window) then
      count, since = count + (tonumber(newest[2][#fields + 2]) or 0), began
      redis.call('XDEL', KEYS.audit, newest[1])
    end
  end
end
fields[#fields + 1], fields[#fields + 2] = 'count', string.format('%.0f', count)
fields[#fields + 1], fields[#fields + 2] = 'since', since
fields[#fields + 1], fields[#fields + 2] = 'call', ARGV.call
return redis.call('XADD', KEYS.audit, 'MAXLEN', '~', ARGV.cap, '*', unpack(fields))
