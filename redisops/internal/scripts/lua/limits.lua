-- Limits: put before the flow_limits.lua of a store. A rate limit and a maximum of leases
-- in flight, which hold over all nodes because their state is in Redis: a sorted set whose
-- members have an instant each:
--   t              when all tokens of the rate limit are back (the TAT of GCRA)
--   r              when they would be back if releases had given none back, if that is later
--   w              until when a poller waits for the end of a lease
--   l and a name   when that lease expires
--
-- Gives: limits

local limits = {}

do
  -- A poller waits for the tokens of TOGETHER seconds, or for half of the burst or of the
  -- period if that is less, and not for each token alone: an exchange costs as much as
  -- 25 timers.
  local TOGETHER = 0.1

  -- LONGEST bounds, in seconds, for how long 'r' keeps the state: a year.
  local LONGEST = 365 * 86400

  local flow, hint = nil, nil
  local limited, step, full, slack, worthwhile = false, 0, 0, 0, 1
  local most = 0

  local tat, tat_stored = 0, 0     -- instants
  local gross, gross_stored = 0, 0 -- the same of 'r'
  local leased, waiting = 0, false
  local charges = ''

  -- open comes before all other functions. Words are the leases and the µs of the rate
  -- limit, its burst, and the maximum of leases in flight; 0 leases: no such limit. Then
  -- come, for each release, when the tokens that the lease took are back: its charge, and
  -- after a '/' that of its key; 0: it took none.
  function limits.open(key, channel, words)
    flow, hint = key, channel
    local count, per, burst, n, rest = string.match(words, '^(%d+) (%d+) (%d+) (%d+)(.*)$')
    charges = rest
    count, per, burst, most = tonumber(count), tonumber(per), tonumber(burst), tonumber(n)
    limited = count > 0
    if not limited then return end
    -- A token returns every step seconds. Instants have a resolution of 0.25 µs: without
    -- slack, a poller that comes on time would come too early.
    step = per / count / 1e6
    full = burst * step
    slack = math.min(1e-6, step / 10)
    worthwhile = math.max(1, math.min(math.floor(TOGETHER / step), math.floor(burst / 2), math.floor(count / 2)))
  end

  -- bounded reports whether there is a maximum of leases.
  function limits.bounded() return most > 0 end

  -- charges returns the charges of the releases, and those of their keys. A node of an
  -- earlier version sends none, and gets no tokens back.
  function limits.charges()
    local of_topic, of_keys = {}, {}
    for topic, key in string.gmatch(charges, ' ([^ /]+)/([^ /]+)') do
      of_topic[#of_topic + 1], of_keys[#of_keys + 1] = number(topic) or 0, number(key) or 0
    end
    return of_topic, of_keys
  end

  local function load(now)
    local stored = redis.call('ZMSCORE', flow, 't', 'w', 'r')
    tat = stored[1] and number(stored[1]) or 0
    tat_stored, gross_stored = tat, stored[3] and number(stored[3]) or 0
    gross = math.max(tat, gross_stored)
    -- The limit was raised, or the clock stepped back: the next token is a step away.
    if tat > now + full + slack then
      tat = now + full
      gross = tat
    end
    if most > 0 then
      local from = '(' .. text(now)
      waiting = stored[2] and number(stored[2]) > now
      leased = redis.call('ZCOUNT', flow, from, '+inf') - (waiting and 1 or 0)
      if tat_stored > now then leased = leased - 1 end
      if gross_stored > now then leased = leased - 1 end
    end
  end

  local function tokens(now)
    return math.floor((now + full - math.max(tat, now) + slack) / step)
  end

  -- lowest returns up to n + 3 of the leases that expire first, and when they do.
  function limits.lowest(n, now)
    local names, scores = {}, {}
    local found = redis.call('ZRANGEBYSCORE', flow, '(' .. text(now), '+inf', 'WITHSCORES', 'LIMIT', '0', n + 3)
    for i = 1, #found, 2 do
      if string.sub(found[i], 1, 1) == 'l' then
        names[#names + 1], scores[#scores + 1] = string.sub(found[i], 2), found[i + 1]
      end
    end
    return names, scores
  end

  -- live makes the state stay for at least so many seconds, and a minute. It is not cut short:
  -- other nodes may have given longer leases.
  local function live(seconds)
    local ms = math.ceil((seconds + 60) * 1e3)
    if redis.call('PTTL', flow) < ms then redis.call('PEXPIRE', flow, string.format('%.0f', ms)) end
  end

  -- ended removes leases, and moved extends them until finish: each a list of members.
  function limits.ended(members) variadic('ZREM', flow, members, 1, #members) end
  function limits.moved(scored, finish, now)
    if #scored == 0 then return end
    variadic('ZADD', flow, scored, 1, #scored)
    live(number(finish) - now)
  end

  local refunded = false

  -- give_back returns what is not back yet of the tokens of released leases, which have
  -- these charges. Tokens return one after the other, as they were taken. That of a lease
  -- is back at its charge, and earlier by what was given back since of the tokens before
  -- it: at most all that was given back. So no token is given back that has returned, and
  -- may have been taken again. The last one comes first, because it is behind the others.
  local function give_back(released, now)
    local given = math.max(gross, now) - math.max(tat, now)
    table.sort(released, function(a, b) return a > b end)
    for _, charge in ipairs(released) do
      local owed = math.min(charge - given - now, step)
      if owed > 0 and charge <= gross + slack then -- otherwise the state was lost meanwhile
        tat, refunded = tat - owed, true
      end
    end
  end

  -- room returns how many of want leases may be given. Released has the charges of leases
  -- that give their tokens back; sift, which may be nil, returns how many leases it has
  -- removed.
  function limits.room(want, now, released, sift)
    load(now)
    if most > 0 then
      if want > 0 and leased >= most and sift then leased = leased - sift(now) end
      want = math.min(want, most - leased)
    end
    if limited then
      give_back(released, now)
      want = math.min(want, tokens(now))
    end
    return math.max(want, 0)
  end

  -- forget removes what has ended.
  function limits.forget(now) redis.call('ZREMRANGEBYSCORE', flow, '-inf', text(now)) end

  -- wait returns until when nothing can be claimed; now: it can. Blocked reports that
  -- something is due and waits for the end of a lease. Finish is the expiry of the leases
  -- that are not in flow yet.
  local function wait(now, h, finish)
    local at, blocked = now, most > 0 and leased >= most and h and h <= now
    if limited and tokens(now) < 1 then at = tat - full + worthwhile * step end
    if blocked then
      local _, scores = limits.lowest(1, now)
      at = math.max(at, scores[1] and number(scores[1]) or number(finish))
    end
    return at, blocked
  end

  -- take takes n tokens, and notes the charge of the first; each of the others has one that is
  -- a step later.
  local function take(n, now)
    gross = math.max(gross, now) + n * step
    tat = math.max(tat, now) + n * step
    limits.charge = text(gross - (n - 1) * step)
  end

  -- note adds to changed what is to be written of the rate limit.
  local function note(changed, now)
    local gone = {}
    local function put(name, instant, stored, needed)
      if needed and instant ~= stored then
        changed[#changed + 1], changed[#changed + 2] = text(instant), name
      elseif not needed and stored ~= 0 then
        gone[#gone + 1] = name
      end
    end
    put('t', tat, tat_stored, tat > now)
    put('r', gross, gross_stored, gross > math.max(tat, now) + slack)
    if #gone > 0 then redis.call('ZREM', flow, unpack(gone)) end
  end

  -- claimed notes the leases that were given, by the names that list has at every stride-th
  -- place. It returns what wait does.
  function limits.claimed(now, h, finish, list, stride)
    local n = #list / stride
    local changed = {}
    if most > 0 then
      for k = 1, n do changed[2 * k - 1], changed[2 * k] = finish, 'l' .. list[stride * k] end
      leased = leased + n
    end
    if limited then
      if n > 0 then take(n, now) end
      note(changed, now)
    end
    local at, blocked = wait(now, h, finish)
    if blocked then changed[#changed + 1], changed[#changed + 2] = text(at), 'w' end
    if #changed > 0 then
      variadic('ZADD', flow, changed, 1, #changed)
      live(math.max(full, most > 0 and number(finish) - now or 0, at - now, math.min(gross - now, LONGEST)))
    end
    local free = waiting and leased < most
    if free then redis.call('ZREM', flow, 'w') end
    if free or refunded and at <= now then redis.pcall('PUBLISH', hint, 'free ' .. text(now)) end
    return at
  end

  -- held is claimed for an answer that is repeated. It writes nothing.
  function limits.held(now, h)
    load(now)
    return (wait(now, h, text(now)))
  end
end
