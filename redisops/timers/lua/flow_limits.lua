-- Limits: put before flow.lua. A rate limit and a maximum of leases in flight, which
-- hold over all nodes because their state is in Redis.
--
-- KEYS: timeline payloads leases dead exchange hint flow
--
-- The first words of the last argument are the leases and the µs of the rate limit, its
-- burst, and the maximum of leases in flight; 0 leases: no such limit. The members of
-- flow, with an instant each:
--   t            when all tokens of the rate limit are back (the TAT of GCRA)
--   w            until when a poller waits for the end of a lease
--   l and an id  when that lease expires

local limits = {}

local bad = mistyped(false, false, false, false, false, false, 'zset')
if bad then return bad end

do
  local flow = KEYS.flow
  local count, per, burst, most = string.match(ARGV[#ARGV], '^(%d+) (%d+) (%d+) (%d+)')
  count, per, burst, most = tonumber(count), tonumber(per), tonumber(burst), tonumber(most)

  -- A token returns every step seconds. Instants have a resolution of 0.25 µs: without
  -- slack, a poller that comes on time would come too early.
  local limited = count > 0
  local step = limited and per / count / 1e6 or 0
  local full = burst * step
  local slack = math.min(1e-6, step / 10)

  -- A poller waits for the tokens of TOGETHER seconds, or for half of the burst or of the
  -- period if that is less, and not for each token alone: an exchange costs as much as
  -- 25 timers.
  local TOGETHER = 0.1
  local worthwhile = limited and
    math.max(1, math.min(math.floor(TOGETHER / step), math.floor(burst / 2), math.floor(count / 2))) or 1

  -- SAMPLE is how many leases are compared with the timeline if none is free.
  local SAMPLE = 16

  local tat, tat_stored = 0, 0 -- instants
  local leased, waiting = 0, false

  local function load(now)
    local stored = redis.call('ZMSCORE', flow, 't', 'w')
    tat = stored[1] and number(stored[1]) or 0
    tat_stored = tat
    -- After a step of the clock backwards: nothing blocks for longer than a token takes.
    if tat > now + full + step then tat = now + full end
    if most > 0 then
      local from = '(' .. text(now)
      waiting = stored[2] and number(stored[2]) > now
      leased = redis.call('ZCOUNT', flow, from, '+inf') - (waiting and 1 or 0)
      if stored[1] and number(stored[1]) > now then leased = leased - 1 end
    end
  end

  local function tokens(now)
    return math.floor((now + full - math.max(tat, now) + slack) / step)
  end

  -- lowest returns up to n + 2 of the leases that expire first, and when they do.
  local function lowest(n, now)
    local ids, scores = {}, {}
    local found = redis.call('ZRANGEBYSCORE', flow, '(' .. text(now), '+inf', 'WITHSCORES', 'LIMIT', '0', n + 2)
    for i = 1, #found, 2 do
      if string.sub(found[i], 1, 1) == 'l' then
        ids[#ids + 1], scores[#scores + 1] = string.sub(found[i], 2), found[i + 1]
      end
    end
    return ids, scores
  end

  -- sift removes leases that the timeline no longer has, of those that expire first: a
  -- lease that lives is extended and moves away from there. Such leases remain when a
  -- timer is cancelled, and from exchanges without the limit.
  local function sift(now)
    local ids, scores = lowest(SAMPLE, now)
    local current = collect('ZMSCORE', KEYS.timeline, ids, 1, #ids)
    local ended = {}
    for i = 1, #ids do
      if not current[i] or not same(current[i], scores[i]) then ended[#ended + 1] = 'l' .. ids[i] end
    end
    variadic('ZREM', flow, ended, 1, #ended)
    leased = leased - #ended
  end

  -- settle removes the leases that have ended, and moves the extended ones.
  local function settle(x)
    local ended, members, moved = {}, {}, {}
    local n = x.total - x.extends
    for i = 1, n do members[i] = 'l' .. ARGV[x.base + i] end
    local scores = collect('ZMSCORE', flow, members, 1, n)
    for i = 1, n do
      if scores[i] and same(scores[i], ARGV[x.base + x.total + i]) then ended[#ended + 1] = members[i] end
    end
    for i = n + 1, x.total do
      local id = ARGV[x.base + i]
      if x.all or x.settled[id] then
        moved[#moved + 1], moved[#moved + 2] = x.finish, 'l' .. id
      end
    end
    variadic('ZREM', flow, ended, 1, #ended)
    variadic('ZADD', flow, moved, 1, #moved)
  end

  local refunded = 0

  -- refund gives the tokens of released leases back.
  local function refund(x)
    local last = x.total - x.extends
    for i = last - x.releases + 1, last do
      if x.all or x.settled[ARGV[x.base + i]] then refunded = refunded + 1 end
    end
    tat = tat - refunded * step
  end

  -- before is that of flow.lua.
  function limits.before(x)
    local want, now = x.want, x.now
    redis.call('ZREMRANGEBYSCORE', flow, '-inf', text(now))
    if most > 0 and x.total > 0 then settle(x) end
    load(now)
    if most > 0 then
      if want > 0 and leased >= most then sift(now) end
      want = math.min(want, most - leased)
    end
    if limited then
      refund(x)
      want = math.min(want, tokens(now))
    end
    return math.max(want, 0)
  end

  -- wait returns until when nothing can be claimed; now: it can. Blocked reports that a
  -- timer is due and waits for the end of a lease. Finish is the expiry of the leases that
  -- are not in flow yet.
  local function wait(now, h, finish)
    local at, blocked = now, most > 0 and leased >= most and h and h <= now
    if limited and tokens(now) < 1 then at = tat - full + worthwhile * step end
    if blocked then
      local _, scores = lowest(1, now)
      at = math.max(at, scores[1] and number(scores[1]) or number(finish))
    end
    return at, blocked
  end

  -- after is that of flow.lua.
  function limits.after(now, h, finish, claimed)
    local n = #claimed / 2
    local changed = {}
    if most > 0 then
      for k = 1, n do changed[2 * k - 1], changed[2 * k] = finish, 'l' .. claimed[2 * k] end
      leased = leased + n
    end
    if limited then
      if n > 0 then tat = math.max(tat, now) + n * step end
      if tat ~= tat_stored and tat > now then
        changed[#changed + 1], changed[#changed + 2] = text(tat), 't'
      elseif tat ~= tat_stored then
        redis.call('ZREM', flow, 't')
      end
    end
    local at, blocked = wait(now, h, finish)
    if blocked then changed[#changed + 1], changed[#changed + 2] = text(at), 'w' end
    if #changed > 0 then
      variadic('ZADD', flow, changed, 1, #changed)
      local life = math.max(full, number(finish) - now, at - now) + 60
      redis.call('PEXPIRE', flow, string.format('%.0f', life * 1e3))
    end
    local free = waiting and leased < most
    if free then redis.call('ZREM', flow, 'w') end
    if free or refunded > 0 and at <= now then redis.pcall('PUBLISH', KEYS.hint, 'free ' .. text(now)) end
    return at
  end

  -- held is that of flow.lua.
  function limits.held(now, h)
    load(now)
    return (wait(now, h, text(now)))
  end
end
