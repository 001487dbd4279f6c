
-- Keyed: put after a script that was made a function, work. With an idempotency
-- key, which is the last of KEYS, the answer of the first call is kept for as
-- long as the last of ARGV says, in ms, and given again; the argument before it
-- identifies the call, because a key is valid for one call only.
local key, call, life = KEYS[#KEYS], ARGV[#ARGV - 1], ARGV[#ARGV]
KEYS[#KEYS] = nil
ARGV[#ARGV] = nil
ARGV[#ARGV] = nil
local kind = redis.call('TYPE', key).ok
if kind ~= 'string' and kind ~= 'none' then
  return redis.error_reply('WRONGTYPE ' .. (#KEYS + 1) .. ' ' .. kind .. ' string')
end
local known = redis.call('GET', key)
if known then
  local first = string.sub(known, 1, #call)
  if first ~= call then return redis.error_reply('WAKEBELLKEY another call') end
  return string.sub(known, #call + 1)
end
local answer = work()
if type(answer) ~= 'string' then return answer end
redis.call('SET', key, call .. answer, 'PX', life)
return answer
