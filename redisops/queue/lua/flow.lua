-- Flow control of a queue: put before exchange.lua for queues that have it, in place of
-- flow_off.lua, after limits.lua. A lease is named by its token. The key of the state is
-- the last one, and the last argument has the words of limits.lua.

local flow = {}

do
  local kinds = {}
  for i = 1, #KEYS - 1 do kinds[i] = false end
  kinds[#KEYS] = 'zset'
  local bad = mistyped(unpack(kinds))
  if bad then return bad end
end
limits.open(KEYS[#KEYS], KEYS[#KEYS - 1], ARGV[#ARGV])

local function members(tokens)
  local list = {}
  for i, token in ipairs(tokens) do list[i] = 'l' .. token end
  return list
end

-- before notes the leases that have ended or are extended, by their tokens, and how many
-- of them were released. It returns how many messages may be claimed.
function flow.before(want, now, ended, extended, finish, releases)
  limits.forget(now)
  if limits.bounded() then
    limits.ended(members(ended))
    local moved = {}
    for _, token in ipairs(extended) do moved[#moved + 1], moved[#moved + 2] = finish, 'l' .. token end
    limits.moved(moved)
  end
  return limits.room(want, now, releases)
end

-- after notes the leases that were given. Due is when the next message can be claimed, in
-- seconds, or nil. It returns for how many µs nothing can be claimed, as a text.
function flow.after(now, due, finish, given)
  return until_due(limits.claimed(now, due, finish, given, 1), now)
end

-- held returns the same as after, for an answer that is repeated.
function flow.held(now, due) return until_due(limits.held(now, due), now) end
