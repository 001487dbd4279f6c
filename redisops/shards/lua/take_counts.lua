-- Takes the counts of a topic out of it into its outbox.
--
-- KEYS: counts moving taken
-- ARGV: move kind
--   move: as for take.lua; kind: one character that the batch begins with.
-- Returns: how many counts were taken, '-' if the move has ended, and the token and the
--   content of the batch, '' if none was; as texts.

local bad = mistyped('hash', 'hash', 'hash')
if bad then return bad end
if ARGV.move ~= '' and redis.call('HGET', KEYS.taken, 'm') ~= ARGV.move then return {'-', '', ''} end

local all = redis.call('HGETALL', KEYS.counts)
local parts, n = {ARGV.kind}, 0
for i = 1, #all, 2 do
  if all[i] ~= 'swept' then
    parts[#parts + 1] = #all[i] .. ' ' .. #all[i + 1] .. '\n' .. all[i] .. all[i + 1]
    n = n + 1
  end
end
if n == 0 then return {'0', '', ''} end
local token = string.format('%.0f', clock() * 1e6) .. '-' .. redis.call('HINCRBY', KEYS.taken, 'n', '1')
local batch = table.concat(parts)
redis.call('HSET', KEYS.moving, token, batch)
if ARGV.move == '' then redis.call('PERSIST', KEYS.taken) end -- drop.lua lets it expire
redis.call('UNLINK', KEYS.counts)
return {string.format('%.0f', n), token, batch}
