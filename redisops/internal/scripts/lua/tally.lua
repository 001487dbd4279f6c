-- Counts per minute, which become counts per day when they are a day old.
--
-- Gives: raise blend tally

-- raise sets a field to n, unless it is higher.
local function raise(key, field, n)
  if (tonumber(redis.pcall('HGET', key, field)) or -1) < tonumber(n) then redis.pcall('HSET', key, field, n) end
end

-- mixed adds a text of latenesses to a table: 'A3C1' are three of the bucket A and one of C.
local function mixed(into, latenesses)
  for bucket, n in string.gmatch(latenesses or '', '(%u)(%d+)') do into[bucket] = (into[bucket] or 0) + tonumber(n) end
  return into
end

-- blend adds latenesses to those of a field.
local function blend(key, field, latenesses)
  local known = redis.pcall('HGET', key, field)
  local sum, parts = mixed(mixed({}, type(known) == 'string' and known or ''), latenesses), {}
  for i = 65, 90 do
    local bucket = string.char(i)
    if sum[bucket] then parts[#parts + 1] = bucket .. string.format('%.0f', sum[bucket]) end
  end
  redis.pcall('HSET', key, field, table.concat(parts))
end

-- tally adds n to the count of a kind (s scheduled, h handled, f failed, d dead, n
-- started, l the sum of their lateness in µs; m, the longest, is for raise, and q, how many
-- were how late, for blend) in this minute. It costs one command; the first of a minute and kind sets the expiry,
-- and a few times a day it sweeps. It never fails: what it counts is done.
local function tally(key, now, kind, n)
  local minute = math.floor(now / 60)
  n = string.format('%.0f', n)
  local total = redis.pcall('HINCRBY', key, string.format('%.0f', minute) .. kind, n)
  if type(total) ~= 'number' or total ~= tonumber(n) then return end
  redis.pcall('EXPIRE', key, '7776000')
  local period = string.format('%.0f', math.floor(minute / 360))
  if redis.call('HGET', key, 'swept') == period then return end
  redis.call('HSET', key, 'swept', period)
  local old, gone = {}, {}
  for _, field in ipairs(redis.call('HKEYS', key)) do
    local day, at = string.match(field, '^(d?)(%d+)[shfdnlmq]$')
    if day == '' and tonumber(at) <= minute - 1440 then
      old[#old + 1], gone[#gone + 1] = field, field
    elseif day == 'd' and tonumber(at) < math.floor(minute / 1440) - 90 then
      gone[#gone + 1] = field
    end
  end
  for i, count in ipairs(collect('HMGET', key, old, 1, #old)) do
    local at, of = string.match(old[i], '^(%d+)(.)$')
    local field = string.format('d%.0f', math.floor(tonumber(at) / 1440)) .. of
    if of == 'q' then
      blend(key, field, count)
    elseif of == 'm' then
      raise(key, field, count or '0')
    else
      redis.pcall('HINCRBY', key, field, count or 0)
    end
  end
  variadic('HDEL', key, gone, 1, #gone)
end
