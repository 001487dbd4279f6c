-- Reads parts of a join in their order, and how they have ended.
--
-- KEYS: join parts ends
-- ARGV: name from count bytes open
--   name: as in enlist.lua; from: how many parts come before; count: the most parts that are
--   looked at; bytes: of ends after which the page is over; open: 1 leaves out those that
--   have ended.
-- Returns: the name of the join, nothing if there is no such join; how many parts come before
--   the next page, '' after the last; and for each part how many come before it, itself, when
--   it was added, and its end, '' if it has none.

local bad = mistyped('hash', 'zset', 'hash')
if bad then return bad end

local name = redis.call('HGET', KEYS.join, 'name')
if not name or ARGV.name ~= '' and name ~= ARGV.name then return {} end

local from, count = tonumber(ARGV.from), tonumber(ARGV.count)
local parts = redis.call('ZRANGE', KEYS.parts, ARGV.from, string.format('%.0f', from + count - 1), 'WITHSCORES')
local out, left, seen = {name, ''}, tonumber(ARGV.bytes), 0
local function put(part, added, ended)
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4] = string.format('%.0f', from + seen), part, added, ended
end
while seen < #parts / 2 and left > 0 do
  local part, added = parts[2 * seen + 1], parts[2 * seen + 2]
  if ARGV.open ~= '1' then
    local ended = redis.call('HGET', KEYS.ends, part) or ''
    left = left - #ended
    put(part, added, ended)
  elseif redis.call('HEXISTS', KEYS.ends, part) == 0 then
    put(part, added, '')
  end
  seen = seen + 1
end
if from + seen < redis.call('ZCARD', KEYS.parts) then out[2] = string.format('%.0f', from + seen) end
return out
