-- Takes entries of a stream out of a topic into its outbox, the first ones.
--
-- KEYS: stream moving taken
-- ARGV: move kind limit
--   move: as for take.lua; kind: one character that the batch begins with.
-- Returns: how many entries were taken, '-' if the move has ended, and the token and the
--   content of the batch, '' if none was; as texts.

local bad = mistyped('stream', 'hash', 'hash')
if bad then return bad end
if ARGV.move ~= '' and redis.call('HGET', KEYS.taken, 'm') ~= ARGV.move then return {'-', '', ''} end

local found = redis.call('XRANGE', KEYS.stream, '-', '+', 'COUNT', ARGV.limit)
if #found == 0 then return {'0', '', ''} end
local parts, ids = {ARGV.kind}, {}
for i, entry in ipairs(found) do
  local lengths = {}
  for j, field in ipairs(entry[2]) do lengths[j] = #field end
  parts[#parts + 1] = table.concat(lengths, ' ') .. '\n' .. table.concat(entry[2])
  ids[i] = entry[1]
end
local token = string.format('%.0f', clock() * 1e6) .. '-' .. redis.call('HINCRBY', KEYS.taken, 'n', '1')
local batch = table.concat(parts)
redis.call('HSET', KEYS.moving, token, batch)
if ARGV.move == '' then redis.call('PERSIST', KEYS.taken) end -- drop.lua lets it expire
variadic('XDEL', KEYS.stream, ids, 1, #ids)
if redis.call('XLEN', KEYS.stream) == 0 then redis.call('UNLINK', KEYS.stream) end
return {string.format('%.0f', #found), token, batch}
