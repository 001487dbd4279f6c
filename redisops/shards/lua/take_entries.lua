-- Takes entries of a stream out of a topic into its outbox, the first ones.
--
-- Parts: fence
-- KEYS: stream moving taken
-- ARGV: move kind limit bytes
--   move: as for take.lua; kind: one character that the batch begins with; limit and bytes:
--   after how many entries, and bytes of them, no further one is taken.
-- Returns: how many entries were taken, '-' if the move has ended, and the token and the
--   content of the batch, '' if none was; as texts.

local bad = mistyped('stream', 'hash', 'hash')
if bad then return bad end
if ARGV.move ~= '' and redis.call('HGET', KEYS.taken, 'm') ~= ARGV.move then return {'-', '', ''} end

local parts, ids, room, from = {ARGV.kind}, {}, tonumber(ARGV.bytes), '-'
while room > 0 and #ids < tonumber(ARGV.limit) do
  local entry = redis.call('XRANGE', KEYS.stream, from, '+', 'COUNT', '1')[1]
  if not entry then break end
  local lengths = {}
  for j, field in ipairs(entry[2]) do
    lengths[j] = #field
    room = room - #field
  end
  parts[#parts + 1] = table.concat(lengths, ' ') .. '\n' .. table.concat(entry[2])
  ids[#ids + 1], from = entry[1], '(' .. entry[1]
end
if #ids == 0 then return {'0', '', ''} end
local token = string.format('%.0f', clock() * 1e6) .. '-' .. redis.call('HINCRBY', KEYS.taken, 'n', '1')
local batch = table.concat(parts)
redis.call('HSET', KEYS.moving, token, batch)
if ARGV.move == '' then redis.call('PERSIST', KEYS.taken) end -- drop.lua lets it expire
variadic('XDEL', KEYS.stream, ids, 1, #ids)
if redis.call('XLEN', KEYS.stream) == 0 then redis.call('UNLINK', KEYS.stream) end
return {string.format('%.0f', #ids), token, batch}
