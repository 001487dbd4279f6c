-- Flow control of a queue: put before exchange.lua for queues that have it, in place of
-- flow_off.lua, after limits.lua. A lease is named by its token. The key of the state is
-- the last one, and the last argument has the words of limits.lua.
--
-- Gives: flow

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

-- before notes the leases that have ended or are extended, by their tokens. Released has
-- those of the releases that were valid, by their places among all. It returns how many
-- messages may be claimed.
function flow.before(want, now, ended, extended, finish, released)
  limits.forget(now)
  if limits.bounded() then
    limits.ended(members(ended))
    local moved = {}
    for _, token in ipairs(extended) do moved[#moved + 1], moved[#moved + 2] = finish, 'l' .. token end
    limits.moved(moved, finish, now)
  end
  local charges, given = #released > 0 and limits.charges() or {}, {}
  for _, place in ipairs(released) do given[#given + 1] = charges[place] end
  return limits.room(want, now, given)
end

-- after notes the leases that were given. Due is when the next message can be claimed, in
-- seconds, or nil. It returns for how many µs nothing can be claimed, as a text. Then
-- flow.charge has when the token of the first lease is back, nil for none.
function flow.after(now, due, finish, given)
  local at = limits.claimed(now, due, finish, given, 1)
  flow.charge = limits.charge
  return until_due(at, now)
end

-- held returns the same as after, for an answer that is repeated.
function flow.held(now, due) return until_due(limits.held(now, due), now) end
