-- Once: put after a script that was made a function, work, and that fires one
-- entry. The mark of the operation is the last of KEYS. When the entry was fired
-- under it before, it is not fired again, and the answer is what was kept then,
-- with the code d. The last of ARGV are the text to store, what distinguishes the
-- operation from another with the same mark, and for how many ms.
local key, life, call, keep = KEYS[#KEYS], ARGV[#ARGV], ARGV[#ARGV - 1], ARGV[#ARGV - 2]
KEYS[#KEYS] = nil
for _ = 1, 3 do ARGV[#ARGV] = nil end
local kind = redis.call('TYPE', key).ok
if kind ~= 'string' and kind ~= 'none' then
  return redis.error_reply('WRONGTYPE ' .. (#KEYS + 1) .. ' ' .. kind .. ' string')
end
local known = redis.call('GET', key)
if known then
  local first, at, kept = string.match(known, '^(%S*) (%S+) (.*)$')
  if first ~= call then return redis.error_reply('WAKEBELLKEY another call') end
  return {at, '', '0', 'd', kept}
end
local answer = work()
if answer[4] == 'f' then redis.call('SET', key, call .. ' ' .. answer[1] .. ' ' .. keep, 'PX', life) end
return answer
