-- Takes a page of the counts of a topic out of it into its outbox.
--
-- Parts: fence
-- KEYS: counts moving taken
-- ARGV: move kind cursor limit
--   move: as for take.lua; kind: one character that the batch begins with; cursor: '0' at
--   the beginning; limit: about how many counts to take.
-- Returns: how many counts were taken, '-' if the move has ended, the next cursor, '0' at the
--   end, and the token and the content of the batch, '' if none was; as texts.

local bad = mistyped('hash', 'hash', 'hash')
if bad then return bad end
if ARGV.move ~= '' and redis.call('HGET', KEYS.taken, 'm') ~= ARGV.move then return {'-', '0', '', ''} end

local page = redis.call('HSCAN', KEYS.counts, ARGV.cursor, 'COUNT', ARGV.limit)
local parts, gone = {ARGV.kind}, {}
for i = 1, #page[2], 2 do
  local field, value = page[2][i], page[2][i + 1]
  if field ~= 'swept' then
    parts[#parts + 1] = #field .. ' ' .. #value .. '\n' .. field .. value
    gone[#gone + 1] = field
  end
end
if #gone == 0 then return {'0', page[1], '', ''} end
local token = string.format('%.0f', clock() * 1e6) .. '-' .. redis.call('HINCRBY', KEYS.taken, 'n', '1')
local batch = table.concat(parts)
redis.call('HSET', KEYS.moving, token, batch)
if ARGV.move == '' then redis.call('PERSIST', KEYS.taken) end -- drop.lua lets it expire
variadic('HDEL', KEYS.counts, gone, 1, #gone)
if redis.call('HLEN', KEYS.counts) == redis.call('HEXISTS', KEYS.counts, 'swept') then redis.call('UNLINK', KEYS.counts) end
return {string.format('%.0f', #gone), page[1], token, batch}
