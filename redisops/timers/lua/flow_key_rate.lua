-- Rate limits per key: put before flow_keys.lua, in place of flow_key_rate_off.lua, for
-- topics with RateLimitByKey. The last key has for each key of timers the instant when
-- all its tokens are back (the TAT of GCRA); without an entry it has all. The end of the
-- last argument but one is the leases and the µs of the limit, and its burst.
--
-- A due timer whose key has no token gets the instant of the next one as its score, and
-- holds its key until then, so that no other timer of the key is looked at.
--
-- Gives: key_rate

local bad = mistyped(false, false, false, false, false, false, false, false, false, false, 'zset')
if bad then return bad end

local key_rate = {}

-- Each timer that is looked at costs about twice as much here as without rates, so the room of
-- keys_order.lua is smaller.
ROOM = 180
room = ROOM

do
  local rates = KEYS[11]
  local count, per, burst = string.match(ARGV[#ARGV - 1], ' (%d+) (%d+) (%d+)$')
  count, per, burst = tonumber(count), tonumber(per), tonumber(burst)

  -- As in flow_limits.lua, a token returns every step seconds, and a key waits for several
  -- tokens at once. It also waits for the end of a span, so that keys share exchanges.
  local TOGETHER, SPAN = 0.02, 0.02

  -- MOST bounds how many timers of a key wait for tokens at once, and RUNNING how many
  -- holders of a key an exchange reads.
  local MOST, RUNNING = 100, 200

  local step = per / count / 1e6
  local full = burst * step
  local slack = math.min(1e-6, step / 10)
  local span = math.min(SPAN, step / 10)
  local worthwhile = math.max(1, math.min(math.floor(TOGETHER / step), math.floor(burst / 2), math.floor(count / 2), MOST))
  key_rate.together = worthwhile -- how many timers of a key wait for tokens at once

  -- ENDED bounds how many entries that say nothing any more one exchange removes. It is
  -- more than an exchange adds.
  local ENDED = 1000

  local tats, changed = {}, {}
  local waits, scores = {}, {} -- timers that wait for a token, and their scores
  local now, now_text = nil, nil

  -- open comes before all other functions.
  function key_rate.open(instant)
    now, now_text = number(instant), instant
    local ended = redis.call('ZCOUNT', rates, '-inf', now_text)
    if ended > 0 then redis.call('ZREMRANGEBYRANK', rates, 0, math.min(ended, ENDED) - 1) end
  end

  -- load reads the state of the keys of timers whose entries were read.
  function key_rate.load(ids)
    local missing = {}
    for _, id in ipairs(ids) do
      local key = entries[id] and key_in(entries[id])
      if key and not tats[key] then
        missing[#missing + 1], tats[key] = key, now
      end
    end
    local found = collect('ZMSCORE', rates, missing, 1, #missing)
    for i, key in ipairs(missing) do
      local tat = found[i] and number(found[i])
      -- The limit was raised, or the clock stepped back: the next token is a step away.
      if tat and tat > now + full + slack then
        tats[key], changed[key] = now + full, true
      elseif tat then
        tats[key] = math.max(tat, now)
      end
    end
  end

  function key_rate.tokens(key)
    return math.floor((now + full - math.max(tats[key], now) + slack) / step)
  end

  function key_rate.take(key)
    tats[key], changed[key] = math.max(tats[key], now) + step, true
  end

  -- charges returns when the tokens of claimed timers are back: a text with the charges of
  -- flow.lua, each after a ','.
  function key_rate.charges(claimed)
    local at, texts, list = {}, {}, {}
    for i = #claimed, 2, -2 do
      local entry = entries[claimed[i]]
      local key = entry and key_in(entry)
      local charge = key and (at[key] or tats[key])
      if charge then
        at[key] = charge - step
        texts[charge] = texts[charge] or text(charge)
      end
      list[i / 2] = charge and texts[charge] or '0'
    end
    return #list > 0 and ',' .. table.concat(list, ',') or nil
  end

  -- give_back gives back what is not back yet of the tokens of released timers, which have
  -- these charges: that of the last timer of a key that has started, then that of the one
  -- before it, and so on. The tokens of others return by themselves: one that was started
  -- after them may have used what they would give back.
  function key_rate.give_back(ids, charges)
    key_rate.load(ids)
    local order = {}
    for i = 1, #ids do order[i] = i end
    table.sort(order, function(a, b) return charges[a] > charges[b] end)
    for _, i in ipairs(order) do
      local key = entries[ids[i]] and key_in(entries[ids[i]])
      if key and charges[i] > now and math.abs(charges[i] - tats[key]) < step / 2 then
        tats[key], changed[key] = math.max(tats[key] - step, now), true
      end
    end
  end

  -- refund gives back the tokens that timers took in this exchange.
  function key_rate.refund(ids)
    key_rate.load(ids)
    for _, id in ipairs(ids) do
      local key = entries[id] and key_in(entries[id])
      if key then tats[key], changed[key] = tats[key] - step, true end
    end
  end

  -- wait makes a timer that is due wait for the next tokens of its key, after the ahead
  -- timers that wait until last.
  function key_rate.wait(id, key, score, ahead, last)
    flow.waited = (flow.waited or 0) + 1
    waits[#waits + 1], scores[#scores + 1] = id, score
    local at = math.ceil((tats[key] - full + math.max(worthwhile, ahead + 1) * step) / span) * span
    return math.max(at, now + 1e-6, last + 1e-6)
  end

  -- write_waits writes which timers wait, until the instants that at has by their ids.
  function key_rate.write_waits(at)
    if #waits == 0 then return end
    local found = collect('HMGET', key_leases, waits, 1, #waits)
    local scored, recorded = {}, {'', SENTINEL}
    for i, id in ipairs(waits) do
      local score = scores[i] == '-inf' and now_text or scores[i]
      local r = current(found[i], score) or {claims = 0, failures = 0, activation = score, first = '', err = ''}
      -- It is not the activation: see waits_for_token of keys.lua.
      r.before = r.activation ~= now_text and now_text or text(now + 1e-6)
      local until_text = text(at[id])
      scored[2 * i - 1], scored[2 * i] = until_text, id
      recorded[2 * i + 1], recorded[2 * i + 2] = id, record('w', r, until_text)
    end
    variadic('ZADD', key_timeline, scored, 1, #scored)
    variadic('HSET', key_leases, recorded, 1, #recorded)
    waits, scores = {}, {}
  end

  -- release_running drops from a key those that hold it but do not wait for a token.
  -- Waiting has those that have begun to wait in this exchange.
  function key_rate.release_running(key, state, waiting)
    local ids = holders(key, state, RUNNING)
    local at = collect('ZMSCORE', key_timeline, ids, 1, #ids)
    local found = collect('HMGET', key_leases, ids, 1, #ids)
    for i, id in ipairs(ids) do
      local r = current(found[i], at[i])
      if not waiting[id] and not waits_for_token(r) then
        if r and (r.state == 'l' or r.tried) then run_apart(key, state, id) else release(key, state, id) end
      end
    end
  end

  -- write writes the state of the keys.
  function key_rate.write()
    local set, ended = {}, {}
    for key in pairs(changed) do
      if tats[key] > now then
        set[#set + 1], set[#set + 2] = text(tats[key]), key
      else
        ended[#ended + 1] = key
      end
    end
    variadic('ZREM', rates, ended, 1, #ended)
    variadic('ZADD', rates, set, 1, #set)
    if #set > 0 then redis.call('PEXPIRE', rates, string.format('%.0f', (full + step + 60) * 1e3)) end
  end
end
