-- Turns of keys: put before due_fair.lua, after due_keys_after.lua and fair_wake.lua. A turn of
-- a key lets as many of its timers start as FairKeys says, times the weight of the key.
--
-- The due timers of the timeline are the queue of the keys. Of a key with several timers, only
-- the first one has to be due there, with the instant of the turn of its key as its score; the
-- others are parked. After a turn the key goes to the end of the queue. So keys.lua has no new
-- states, and nodes without FairKeys may take part: they are only unfair.
--
-- The last key but one, the turns, has 't' and a key for each, with the instant of its next turn.
-- A timer that is due before that is not the turn of its key: it became due by itself, or another
-- script or a node without FairKeys has woken it. If the turn is not over, 'u' and the key has
-- the end of the present second, plus 1/1024 s for each timer that was started in it. What is
-- before the head of the queue is removed. The next timer of a turn that is not over may be far
-- behind the head, if it was not parked yet: therefore 'u' does not have the instant of the turn.
--
-- The last argument but one has, after ' f', how many timers start in a turn, and the weights
-- after a ',' each: class=weight. A class is a key, or what a key has before its first ':'.
--
-- It gives by_key.fair, because a function of Lua may refer to only 60 variables of others.

do
  local fair = {
    list = {}, touched = {}, -- keys of which the next timer has to be due, as a list and a set
    had = {},                -- keys that had a turn in this exchange
  }
  by_key.fair = fair

  local at = key_rate and 12 or 11
  local kinds = {}
  for i = 1, at - 1 do kinds[i] = false end
  kinds[at] = 'zset'
  local bad = mistyped(unpack(kinds))
  if bad then return bad end

  local key_turns = KEYS[at]

  -- LONGEST is how many timers may start in a turn: below 1024, for 'u' has them in a fraction of
  -- a second. LIFE is in ms. ENDED bounds how many entries that say nothing any more an exchange
  -- removes: more than it adds.
  local LONGEST, LIFE, ENDED = 1000, '3600000', 1000

  local each, classes = string.match(ARGV[#ARGV - 1], ' f(%d+)(%S*)')
  local weights = {}
  for class, n in string.gmatch(classes, '([^=,]+)=(%d+)') do weights[class] = tonumber(n) end

  -- length_of returns how many timers of a key start in a turn.
  local function length_of(key)
    local weight = weights[key] or weights[string.match(key, '^([^:]*):') or ''] or 1
    return math.min(each * weight, LONGEST)
  end

  local turns, written = {}, {} -- by key: at and used; and the keys whose turns are to be written
  local prior = {}              -- by timers that start: at and used of their keys before the start
  local now, last = 0, 0

  -- open comes before all other functions. An exchange puts at most want keys at the end of the
  -- queue, which is the present, one behind the other.
  function fair.open(instant, want) now, last = instant, instant - want * 1e-6 end

  function fair.touch(key)
    if fair.touched[key] then return end
    fair.touched[key], fair.list[#fair.list + 1] = true, key
  end

  -- turn is the turn of a key: its instant, and how many timers it has started in it.
  function fair.turn(key)
    if not turns[key] then turns[key] = {at = -math.huge, used = 0} end
    return turns[key]
  end

  -- read reads the turns of the keys of timers.
  function fair.read(ids)
    local members, of = {}, {}
    for _, id in ipairs(ids) do
      local key = key_in(entries[id])
      if not turns[key] then
        turns[key] = {at = -math.huge, used = 0}
        members[#members + 1], of[#of + 1] = 't' .. key, turns[key]
        if length_of(key) > 1 then members[#members + 1], of[#of + 1] = 'u' .. key, turns[key] end
      end
    end
    for i, score in ipairs(collect('ZMSCORE', key_turns, members, 1, #members)) do
      local at = score and number(score)
      if at and byte(members[i]) == byte('t') then
        of[i].at = at
      elseif at then
        of[i].used = math.min(math.floor(at % 1 * 1024 + 0.5), LONGEST)
      end
    end
    for _, t in ipairs(of) do t.at = math.min(t.at, now) end -- the clock may have stepped back
  end

  -- forget removes the turns before the head of the queue.
  function fair.forget(head)
    if head < 0 then return end
    local ended = redis.call('ZCOUNT', key_turns, '-inf', '(' .. text(head))
    if ended > 0 then redis.call('ZREMRANGEBYRANK', key_turns, 0, math.min(ended, ENDED) - 1) end
  end

  -- begins notes that a timer starts in the turn of its key at an instant, and reports whether
  -- the turn is over.
  function fair.begins(id, key, instant)
    local t = fair.turn(key)
    prior[id] = {t.at, t.used}
    t.used, t.at = t.used + 1, math.max(t.at, instant)
    if t.used >= length_of(key) then
      last = last + 1e-6
      t.at, t.used = last, 0
    end
    fair.had[key], written[key] = true, true
    fair.touch(key)
    return t.used == 0
  end

  -- give_back gives the keys of timers that were to be claimed, and were not, their turns back.
  function fair.give_back(claimed)
    local has, given = {}, {}
    for i = 2, #claimed, 2 do has[claimed[i]] = true end
    for _, id in ipairs(taken) do
      local key = prior[id] and key_in(entries[id])
      if key and not has[id] and not given[key] then
        given[key] = true
        turns[key].at, turns[key].used = prior[id][1], prior[id][2]
      end
    end
  end

  -- write writes the turns.
  function fair.write()
    local set, over = {}, {}
    for key in pairs(written) do
      local t = turns[key]
      if t.at > 0 then
        set[#set + 1], set[#set + 2] = text(t.at), 't' .. key
        if t.used > 0 then
          set[#set + 1], set[#set + 2] = text(math.floor(now) + 1 + t.used / 1024), 'u' .. key
        elseif length_of(key) > 1 then
          over[#over + 1] = 'u' .. key
        end
      end
    end
    if #set == 0 then return end
    variadic('ZADD', key_turns, set, 1, #set)
    variadic('ZREM', key_turns, over, 1, #over)
    redis.call('PEXPIRE', key_turns, LIFE)
  end

  -- late has the records of timers that are due with the score of the present, because
  -- due_keys_after.lua looks for their tokens by it, until fair.write_late.
  local late = {}

  -- turn_score returns the instant of the turn of the key of a timer that becomes due with a
  -- record, as a text; nil: the present.
  function keyed.turn_score(id, r)
    local t = turns[key_in(entries[id])]
    if not t or t.at <= 0 then return nil end
    if not key_rate then return text(t.at) end
    late[id] = r
    return nil
  end

  -- write_late gives such timers the instants of the turns of their keys.
  function fair.write_late()
    local scored, recorded = {}, {}
    for id, r in pairs(late) do
      if not waits[id] and not started[id] then
        local score = text(turns[key_in(entries[id])].at)
        scored[#scored + 1], scored[#scored + 2] = score, id
        recorded[#recorded + 1], recorded[#recorded + 2] = id, record('w', r, score)
      end
    end
    variadic('ZADD', KEYS[1], scored, 1, #scored)
    variadic('HSET', KEYS[3], recorded, 1, #recorded)
  end
end
