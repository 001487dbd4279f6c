-- Hand-over: put before exchange.lua, after keys.lua, for topics whose timers have keys,
-- but no limits and no key runs. It runs the exchange of a long queue on one key, which settles a timer
-- with an ack and claims the next one of its key, where nothing else is due and nothing
-- is out of the ordinary. Effects and answer are those of exchange.lua at half of the
-- cost: the functions of the parts that follow need not be defined, and nothing is
-- looked at twice. Otherwise it writes nothing, and exchange.lua runs.
--
-- KEYS: timeline payloads leases dead exchange hint flow keys order busy
-- ARGV: sequence ttl want max_bytes max_claims dead_cap acks nacks rejects releases extends max_payload apart_from ahead known ...

-- next_in_line returns what write_hand_over needs to pass the key of a timer on; nil if
-- exchange.lua must run. It only reads, and what it reads may have a wrong type.
local function next_in_line(id, token)
  local call, timeline = redis.call, KEYS.timeline
  local entry = call('HGET', KEYS.keys, id)
  local _, key = place_of(entry)
  call('XLEN', KEYS.dead) -- nothing is written if its type is wrong
  -- The timer holds the key alone.
  if not key or is_sole(entry) or call('HGET', KEYS.busy, key) ~= 'm' .. noted(id) then return nil end

  local prefix = prefix_of(key)
  local member = call('ZRANGEBYLEX', KEYS.order, '[' .. prefix, '(' .. prefix .. '\255', 'LIMIT', '0', '1')[1]
  if not member then return nil end
  local place = string.sub(member, #prefix + 1, #prefix + PLACE)
  local next_id = string.sub(member, #prefix + PLACE + 1)
  local scores = call('ZMSCORE', timeline, id, next_id)
  -- The next timer was not claimed before: it has no record.
  if not scores[1] or not same(scores[1], token) or scores[2] ~= PARKED or call('HEXISTS', KEYS.leases, next_id) == 1 then return nil end

  local size, apart_from = call('HSTRLEN', KEYS.payloads, next_id), tonumber(ARGV.apart_from)
  if size == 0 or size > tonumber(ARGV.max_payload) or apart_from > 0 and size >= apart_from then return nil end
  local last = integer(string.match(call('GETRANGE', KEYS.exchange, 0, 20), '^%d+'))
  if last and last >= tonumber(ARGV.sequence) or call('EXISTS', KEYS.hint) == 1 then return nil end

  local lowest = call('ZRANGE', timeline, 0, 1, 'WITHSCORES')
  local now = clock()
  if number(lowest[2]) <= now then return nil end
  return {
    id = id, next_id = next_id, key = key, member = member, activation = instant_of(place), now = now,
    others = number(lowest[1] == id and lowest[4] or lowest[2]), -- the head of all other timers
    size = size, payload = call('HGET', KEYS.payloads, next_id),
  }
end

local function write_hand_over(x)
  local call, id, next_id, now = redis.call, x.id, x.next_id, text(x.now)
  local finish_at = x.now + tonumber(ARGV.ttl)
  local finish = text(finish_at)
  local rec = record('l', {claims = 1, failures = 0, activation = x.activation, before = now, first = '', err = ''}, finish)

  -- The first write must be one that Redis allows when its memory is full.
  call('ZREM', KEYS.timeline, id)
  call('HDEL', KEYS.payloads, id)
  call('HDEL', KEYS.leases, id)
  call('HDEL', KEYS.keys, id)
  call('ZREM', KEYS.order, x.member)
  call('HSET', KEYS.busy, x.key, 'm' .. noted(next_id))
  call('ZADD', KEYS.timeline, finish, next_id)
  call('HSET', KEYS.leases, '', SENTINEL, next_id, rec)
  call('SET', KEYS.exchange, ARGV.sequence .. '\n' .. finish .. ' 0 0 0 0 -\n' .. noted(next_id), 'PX', '120000')
  return now .. ' ' .. finish .. ' ' .. until_due(math.min(x.others, finish_at), x.now) .. ' 0 0 0 0 1 0 0 0 - - ' .. ARGV.known .. '\n' ..
    #next_id .. ' ' .. x.size .. ' 1 0 ' .. x.activation .. '\n' .. next_id .. x.payload
end

if #ARGV == ARGV_NAMED + 4 and ARGV.acks == '1' and ARGV.want ~= '0' and string.sub(ARGV[#ARGV - 1], 1, 2) == '1 ' then
  local read, x = pcall(next_in_line, ARGV[ARGV_NAMED + 1], ARGV[ARGV_NAMED + 2])
  if read and x then return write_hand_over(x) end
end
