-- Queue: put before the scripts of queues, after the prelude. It knows stored
-- messages, and takes them out of the processing list without walking it.
--
-- Gives: PREFIX instants whole deliveries tokens_after unfenced hex_of raw id_of ordered_id
--   free test_owners free_ids is_free forget_claims noted unnote take_out

-- NEAR is how many entries of the processing list are looked at from either
-- end: what is settled is nearly always there, and a walk of the whole list
-- takes 24 ns an entry.
local NEAR = 128

local PREFIX = '\30RMQ1:'

-- instants gives Redis's clock in seconds, and in the milliseconds that
-- deadlines are kept in.
local function instants()
  local t = redis.call('TIME')
  local micros = tonumber(t[2])
  return tonumber(t[1]) + micros / 1e6, tonumber(t[1]) * 1000 + math.floor(micros / 1000)
end

local function whole(x)
  return string.format('%.0f', x)
end

-- deliveries reads how often a message was delivered. The peer has that hash too:
-- what is no count is as none.
local function deliveries(s)
  return s and counted(s) and tonumber(s) or 0
end

-- tokens_after takes n tokens from the counter, and answers the one before them.
-- A counter that is no number of Lua goes on from the clock in µs, which is above
-- all that were taken one by one.
local function tokens_after(counter, n, micros)
  local last = redis.pcall('INCRBY', counter, n)
  if type(last) == 'table' or last < n or last > EXACT then
    last = micros + n
    redis.call('SET', counter, whole(last))
  end
  return last - n
end

-- unfenced reports whether a token belongs to a message that is delivered at most
-- once. Redis does not store such tokens.
local function unfenced(token)
  return string.sub(token, 1, 1) == '-'
end

-- bytes_of maps two hexadecimal digits to their byte.
local function bytes_of()
  local bytes = {}
  for i = 0, 255 do
    bytes[string.format('%02x', i)] = string.char(i)
  end
  return bytes
end

local function hex_of(value)
  local digits = {}
  for hex, byte in pairs(bytes_of()) do digits[byte] = hex end
  return (string.gsub(value, '.', digits))
end

-- raw gives the payload of a stored message, as it is kept in the lists of what
-- is completed, failed or dead. What is no envelope is its own payload.
local function raw(stored)
  if string.sub(stored, 1, #PREFIX) ~= PREFIX then return stored end
  local ok, e = pcall(cjson.decode, string.sub(stored, #PREFIX + 1))
  if not ok or type(e) ~= 'table' then return stored end
  if type(e.payload) == 'string' then return e.payload end
  local hex = e.payload_hex
  if type(hex) ~= 'string' or #hex % 2 == 1 or string.find(hex, '%X') then return stored end
  return (string.gsub(string.lower(hex), '..', bytes_of()))
end

-- id_of names a stored message; a value without an envelope is named by its hash.
local function id_of(stored)
  local hex = string.match(stored, '^\30RMQ1:{"id":"(%x+)"')
  if hex and #hex == 32 then return hex end -- without decoding the payload
  if string.sub(stored, 1, #PREFIX) == PREFIX then
    local ok, e = pcall(cjson.decode, string.sub(stored, #PREFIX + 1))
    if ok and type(e) == 'table' and type(e.id) == 'string' and e.id ~= '' and #e.id <= 512 then return e.id end
  end
  return redis.sha1hex(stored)
end

local ORDERED = '^\30RMQ1:{"id":"(' .. string.rep('%x', 12) .. '7' .. string.rep('%x', 19) .. ')"'

-- ordered_id is the id of a message where ids are in the order of publishing,
-- which those that Wakebell makes are.
local function ordered_id(stored)
  return string.match(stored, ORDERED)
end

-- free deletes the deduplication key of a message, unless a newer publish has
-- it: then its value is another id. owners begins the keys that say which key a
-- message has; '' where that is not kept. The answer is whether it was known.
local function free(owners, stored)
  if owners == '' then return false end
  local id = id_of(stored)
  local owner = owners .. id
  local key = redis.call('GET', owner)
  if not key then return false end
  local holder = redis.pcall('GET', key) -- to which the user may have no right
  if type(holder) == 'table' then return false end
  if holder == id then redis.pcall('DEL', key) end
  redis.call('DEL', owner)
  return true
end

-- test_owners fails if the user has no right to the keys that owners begins. They are made of
-- ids, so Redis does not test it before the script, which must not find out after its first
-- write.
local function test_owners(owners)
  if owners ~= '' then redis.call('DEL', owners) end
end

-- FREED is for how long in ms the ids of deleted messages are kept.
local FREED = '604800000'

-- free_ids frees the deduplication keys of messages that an operator has deleted.
-- Which keys they have is not known, so it keeps their ids: a key with one of these
-- as its value suppresses nothing.
local function free_ids(freed, ids)
  if #ids == 0 then return end
  variadic('SADD', freed, ids, 1, #ids)
  redis.call('PEXPIRE', freed, FREED)
end

-- is_free reports whether the message that has a deduplication key was deleted.
local function is_free(freed, id)
  return #id == 32 and redis.call('SISMEMBER', freed, id) == 1
end

-- forget_claims removes the records that the peer keeps of its claims, by the
-- tokens of those claims.
local function forget_claims(refs, ids, backrefs, tokens)
  if #tokens == 0 or redis.call('EXISTS', refs, backrefs) == 0 then return end
  for _, token in ipairs(tokens) do
    local result = redis.call('HGET', refs, token)
    if result then
      redis.pcall('DEL', result) -- its slot is unknown
      redis.call('HDEL', refs, token)
    end
    local claim = redis.call('HGET', backrefs, token)
    if claim then
      redis.call('HDEL', ids, claim)
      redis.call('HDEL', backrefs, token)
    end
  end
end

-- noted names a message in gone. A message may have several entries to leave out,
-- when it was claimed again before the list had turned: each of them has a note
-- of its own, with one '\0' more in front. Envelopes begin with '\30'.
local function noted(stored)
  if string.sub(stored, 1, #PREFIX) == PREFIX then return stored end
  return '\1' .. stored
end

-- note adds a message to gone: one of its entries in the processing list is to be
-- left out.
local function note(gone, stored)
  local name = noted(stored)
  while redis.call('SADD', gone, name) == 0 do name = '\0' .. name end
end

-- unnote takes a note back, and answers whether there was one.
local function unnote(gone, stored)
  local name = noted(stored)
  if redis.call('SISMEMBER', gone, name) == 0 then return false end
  while redis.call('SISMEMBER', gone, '\0' .. name) == 1 do name = '\0' .. name end
  redis.call('SREM', gone, name)
  return true
end

-- sweep turns the processing list by up to n entries and leaves out what is
-- gone. The order of that list means nothing.
local function sweep(processing, gone, n)
  local bytes = 0
  while n > 0 and bytes < 262144 do
    local part = redis.call('RPOP', processing, math.min(n, 16))
    if not part or #part == 0 then
      redis.call('DEL', gone)
      return
    end
    local kept, names = {}, {}
    for i, stored in ipairs(part) do names[i] = noted(stored) end
    local there = redis.call('SMISMEMBER', gone, unpack(names))
    for i, stored in ipairs(part) do
      bytes = bytes + #stored
      if there[i] == 0 or not unnote(gone, stored) then kept[#kept + 1] = stored end
    end
    variadic('LPUSH', processing, kept, 1, #kept)
    n = n - #part
  end
end

-- take_out removes messages from the processing list. One that is in the midst
-- of a long list is noted in gone, and left out when the list has turned so
-- far: no settlement pays for the length of the list.
local function take_out(processing, gone, list)
  local length, notes = redis.call('LLEN', processing), 0
  for _, stored in ipairs(list) do
    if length <= NEAR then
      length = length - redis.call('LREM', processing, -1, stored)
    elseif redis.call('LPOS', processing, stored, 'RANK', -1, 'MAXLEN', NEAR) then
      length = length - redis.call('LREM', processing, -1, stored)
    elseif redis.call('LPOS', processing, stored, 'MAXLEN', NEAR) then
      length = length - redis.call('LREM', processing, 1, stored)
    else
      note(gone, stored)
      notes = notes + 1
    end
  end
  if notes > 0 or redis.call('EXISTS', gone) == 1 then
    sweep(processing, gone, math.min(length, 16 + 4 * notes))
  end
end
