-- Keyed: put after a script that was made a function, work, and that answers for each of some
-- items, which have ids. With an idempotency key, each answer is stored for as long as life
-- says, in ms, as a field of the last of KEYS. If an item has an answer, nothing is done, and
-- the reply is '!', then for each item its answer and a line feed; the caller repeats the
-- call for the others.
--
-- The last of ARGV are the ids, their number, what identifies the call, because a key is
-- valid for one call only, life, 1 if the answer a, absent, is stored as well, and 1 if the
-- last of KEYS is the one that keyed.lua has: then that finds the key used, too.
local n = #ARGV
local count, call, life = tonumber(ARGV[n - 4]), ARGV[n - 3], ARGV[n - 2]
local absent, whole = ARGV[n - 1] == '1', ARGV[n] == '1' and table.remove(KEYS)
local key = table.remove(KEYS)
local ids = {}
for i = 1, count do ids[i] = ARGV[n - 5 - count + i] end
for i = n, n - 4 - count, -1 do ARGV[i] = nil end

local kind = redis.call('TYPE', key).ok
if kind ~= 'hash' and kind ~= 'none' then
  return redis.error_reply('WRONGTYPE ' .. (#KEYS + 1) .. ' ' .. kind .. ' hash')
end
local of = redis.call('HGET', key, '') -- no item has this id
local used = of or whole and redis.call('GET', whole)
if used and used ~= call then return redis.error_reply('WAKEBELLKEY another call') end
local known, some = of and collect('HMGET', key, ids, 1, count) or {}, false
for i = 1, count do
  some = some or known[i]
  known[i] = (known[i] or '') .. '\n'
end
if some then return '!' .. join(known) end

local answer = work()
if type(answer) ~= 'string' then return answer end
local fields = {'', call}
local function note(id, text)
  if text == 'a' and not absent then return end
  fields[#fields + 1], fields[#fields + 2] = id, text
end
local created = string.match(answer, '^a (%S+)\n$') -- of schedule.lua: all were
if created then
  for i = 1, count do note(ids[i], 'c ' .. created .. ' -') end
elseif string.find(answer, '\n', 1, true) then
  local i = 0
  for line in string.gmatch(answer, '([^\n]*)\n') do
    i = i + 1
    note(ids[i], line)
  end
else
  for i = 1, count do note(ids[i], string.sub(answer, i, i)) end
end
if #fields > 2 then
  variadic('HSET', key, fields, 1, #fields)
  redis.call('PEXPIRE', key, life)
  if whole then redis.call('SET', whole, call, 'PX', life) end
end
return answer
