-- Limits of a topic: put after limits.lua, before flow.lua.
--
-- KEYS: timeline payloads leases dead exchange hint flow
--
-- The first words of the last argument are those of limits.lua. A lease is named by the id
-- of its timer.

local bad = mistyped(false, false, false, false, false, false, 'zset')
if bad then return bad end

limits.open(KEYS.flow, KEYS.hint, ARGV[#ARGV])

do
  -- SAMPLE is how many leases are compared with the timeline if none is free.
  local SAMPLE = 16

  -- sift removes leases that the timeline no longer has, of those that expire first: a
  -- lease that lives is extended and moves away from there. Such leases remain when a
  -- timer is cancelled, and from exchanges without the limit.
  local function sift(now)
    local ids, scores = limits.lowest(SAMPLE, now)
    local current = collect('ZMSCORE', KEYS.timeline, ids, 1, #ids)
    local ended = {}
    for i = 1, #ids do
      if not current[i] or not same(current[i], scores[i]) then ended[#ended + 1] = 'l' .. ids[i] end
    end
    limits.ended(ended)
    return #ended
  end

  -- settle removes the leases that have ended, and moves the extended ones.
  local function settle(x)
    local ended, members, moved = {}, {}, {}
    local n = x.total - x.extends
    for i = 1, n do members[i] = 'l' .. ARGV[x.base + i] end
    local scores = collect('ZMSCORE', KEYS.flow, members, 1, n)
    for i = 1, n do
      if scores[i] and same(scores[i], ARGV[x.base + x.total + i]) then ended[#ended + 1] = members[i] end
    end
    for i = n + 1, x.total do
      if x.all or x.valid[i] then
        moved[#moved + 1], moved[#moved + 2] = x.finish, 'l' .. ARGV[x.base + i]
      end
    end
    limits.ended(ended)
    limits.moved(moved, x.finish, x.now)
  end

  -- released returns the charges of the leases that were released.
  local function released(x)
    local list = {}
    if x.releases == 0 then return list end
    local charges, first = limits.charges(), x.total - x.extends - x.releases
    for i, charge in ipairs(charges) do
      if x.all or x.valid[first + i] then list[#list + 1] = charge end
    end
    return list
  end

  -- before is that of flow.lua.
  function limits.before(x)
    limits.forget(x.now)
    if limits.bounded() and x.total > 0 then settle(x) end
    return limits.room(x.want, x.now, released(x), sift)
  end

  -- after is that of flow.lua.
  function limits.after(now, h, finish, claimed)
    return limits.claimed(now, h, finish, claimed, 2)
  end
end
