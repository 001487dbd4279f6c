-- Settles and extends leases, then claims what is due: one exchange.
--
-- Parts: mark flow_off packed replay acks
--   flow: mark limits flow_limits flow packed replay acks
--   keys: mark keys hand_over limits_off flow keys_states keys_order flow_key_rate_off
--     flow_keys due_keys due_keys_after packed replay acks
--   both: mark limits flow_limits flow keys keys_states keys_order flow_key_rate_off
--     flow_keys due_keys due_keys_after packed replay acks
--   rates: mark limits flow_limits flow keys keys_states keys_order flow_key_rate flow_keys
--     due_keys due_keys_after packed replay acks
-- KEYS: timeline payloads leases dead exchange hint keys control
--   control comes last; before it keys (leases without a right to it), or those of the parts.
-- ARGV: sequence ttl want max_bytes max_claims dead_cap acks nacks rejects releases extends max_payload apart_from ahead known ...
--   ttl in seconds; max_claims and dead_cap 0 for none; max_payload is the maximum
--   number of bytes of a payload; apart_from the number of bytes from which the
--   payloads of a claim are left out, 0 for never; ahead in seconds: timers that become
--   due within it are claimed too, unless flow control bounds the claim or they have
--   records; known as in mark.lua; acks to extends count the arguments that follow: the
--   ids in that order, their tokens, the delays of the nacks in seconds, the
--   errors of the nacks, the reasons of the rejects, each after a 1 if the handler
--   failed, else a 0: a nack without a failure was snoozed, and is no attempt.
-- Returns: one string,
--   "now end next healed orphans refused dead leases apart held waited charges key_runs mark\n"
--     (instants in seconds; next in µs, -1 for none; orphans 0 or 1; apart 1 if the
--     payloads of the leases are left out, else 0; held in µs, for how long flow
--     control claims nothing, else 0; waited: how many timers were made to wait for a
--     token of their key, 0 in a repeated answer; charges and key_runs: those of flow.lua, - for none;
--     mark: of the settings now, as in mark.lua. If it is not the known one, nothing is
--     claimed)
--   refused times "index why\n" (why: superseded s, cancelled c, lost l)
--   dead times "index entry at claims failures activation id_bytes payload_bytes key_bytes\n"
--     id payload key (timers with too many claims have index -1; timers whose payload is
--     too large have index -2 and the reason in place of the payload; timers that have no
--     payload in Redis have index -3; the others no payload; key is '' if the timer has
--     none)
--   leases times "id_bytes payload_bytes claims failures activation\n" id payload; see failures_of
--   or the error STALE when a later sequence has been run.

local bad = mistyped('zset', 'hash', 'hash', 'stream', 'string', 'string')
if bad then return bad end

local timeline, payloads, leases, dead = KEYS.timeline, KEYS.payloads, KEYS.leases, KEYS.dead
local by_key = flow and flow.by_key
local now = clock()
local now_text = text(now)
local sequence, max_payload = tonumber(ARGV.sequence), tonumber(ARGV.max_payload)
local apart_from = tonumber(ARGV.apart_from)

local last = integer(string.match(redis.call('GETRANGE', KEYS.exchange, 0, 20), '^%d+'))
local again = last == sequence and
  replay(redis.call('GET', KEYS.exchange), now, timeline, payloads, leases, dead, max_payload, apart_from, ARGV.known)
if again then return again end
if last and last > sequence then
  return redis.error_reply('STALE ' .. string.format('%.0f', last))
end

local finish_at = now + tonumber(ARGV.ttl)
local finish = text(finish_at)
local want, max_bytes = tonumber(ARGV.want), tonumber(ARGV.max_bytes)
local max_claims, dead_cap = tonumber(ARGV.max_claims), ARGV.dead_cap
local acks, nacks, rejects = tonumber(ARGV.acks), tonumber(ARGV.nacks), tonumber(ARGV.rejects)
local releases, extends = tonumber(ARGV.releases), tonumber(ARGV.extends)
local base = ARGV_NAMED
local total = acks + nacks + rejects + releases + extends

local gone = {}           -- ids of timers to remove
local dropped = {}        -- ids of records to remove
local scored = {}         -- score, id, …
local recorded = {}       -- id, record, …
local refused, refusals = 0, {}

-- dead_letter dead-letters the timer of the settlement with that index; those below 0 are
-- dead letters of the claim. If payload is nil the dead letter has none.
local function dead_letter(index, id, payload, r, reason)
  local entry = {dead}
  if dead_cap ~= '0' then
    entry[2], entry[3], entry[4] = 'MAXLEN', '~', dead_cap
  end
  entry[#entry + 1] = '*'
  if payload then entry[#entry + 1], entry[#entry + 2] = 'payload', payload end
  for _, v in ipairs({'id', id, 'claims', string.format('%.0f', r.claims),
    'failures', string.format('%.0f', r.failures), 'reason', reason, 'activation', r.activation, 'at', now_text}) do
    entry[#entry + 1] = v
  end
  local key = dead_key(by_key, id)
  if key then entry[#entry + 1], entry[#entry + 2] = 'key', key end
  local facts = index .. ' ' .. redis.call('XADD', unpack(entry)) .. ' ' .. now_text .. ' ' ..
    r.claims .. ' ' .. r.failures .. ' ' .. r.activation
  death(facts, id, index == -1 and payload or index == -2 and reason or '', key or '')
  gone[#gone + 1] = id
end

local function rescore(id, score, rec)
  scored[#scored + 1], scored[#scored + 2] = score, id
  recorded[#recorded + 1], recorded[#recorded + 2] = id, rec
end

local head_before = nil -- that of the timeline, if the exchange may lower it

local acked = total == acks and all_acked(timeline, base, total)
local scores = acked and {} or collect('ZMSCORE', timeline, ARGV, base + 1, base + total)
local settled = {} -- ids settled here: only the first of two verdicts counts
local valid = {}   -- the numbers of the settlements that count: others of their ids do not

local function holds(i)
  local id, score, token = ARGV[base + i], scores[i], ARGV[base + total + i]
  local mine = score and (score == token or same(score, token))
  if mine and not settled[id] then
    settled[id], valid[i] = true, true
    return true
  end
  -- A node may still hold an earlier lease on the id beside the present one.
  local why = 'l'
  if not mine and (number(token) or 0) > now then why = score and 's' or 'c' end
  refused = refused + 1
  refusals[refused] = (i - 1) .. ' ' .. why .. '\n'
  return false
end

-- The common case, only acks with valid tokens, builds no lists.
local good = acked and total or 0
if total == acks then
  while good < acks and scores[good + 1] == ARGV[base + total + good + 1] do good = good + 1 end
end
-- The first write must be one that Redis allows when its memory is full. Redis then
-- allows the other writes too, and a full Redis can be drained.
if good < total or acks == 0 then redis.call('HDEL', leases, SENTINEL) end
if good == total then
  variadic('ZREM', timeline, ARGV, base + 1, base + acks)
  variadic('HDEL', payloads, ARGV, base + 1, base + acks)
  variadic('HDEL', leases, ARGV, base + 1, base + acks)
else
  for i = 1, acks do
    if holds(i) then gone[#gone + 1] = ARGV[base + i] end
  end
end

if total > acks then
  if nacks + releases > 0 then head_before = head(timeline) or math.huge end
  local records = collect('HMGET', leases, ARGV, base + acks + 1, base + total)
  local delays = base + 2 * total
  local i = acks

  -- mine returns the record of the i-th lease, or a default record if the hash was
  -- deleted by hand.
  local function mine()
    return current(records[i - acks], scores[i]) or
      {claims = 1, failures = 0, activation = now_text, before = now_text, first = '', err = ''}
  end

  for n = 1, nacks do
    i = i + 1
    if holds(i) then
      local r, score, reason = mine(), text(now + tonumber(ARGV[delays + n])), ARGV[delays + nacks + n]
      local failed = tonumber(string.sub(reason, 1, 1))
      r.claims, r.failures, r.err = math.max(0, r.claims - 1 + failed), r.failures + failed, string.sub(reason, 2)
      r.before, r.first = r.activation, '' -- it was delivered: the next debounce starts a new period
      rescore(ARGV[base + i], score, record('w', r, score))
    end
  end
  if by_key and rejects > 1 then
    local rejected = {}
    for n = 1, rejects do rejected[n] = ARGV[base + acks + nacks + n] end
    by_key.read_keys(rejected)
  end
  for n = 1, rejects do
    i = i + 1
    if holds(i) then
      local id = ARGV[base + i]
      local r, reason = mine(), ARGV[delays + 2 * nacks + n]
      r.failures = r.failures + tonumber(string.sub(reason, 1, 1))
      dead_letter(i - 1, id, body(payloads, id, max_payload), r, string.sub(reason, 2))
    end
  end
  for _ = 1, releases do
    i = i + 1
    if holds(i) then
      local r, id = mine(), ARGV[base + i]
      local score = r.before
      r.claims, r.before = math.max(0, r.claims - 1), r.activation
      -- The score of a timer that was parked is not its activation.
      if r.claims == 0 and not r.tried and r.first == '' and (not by_key or same(score, r.activation)) then
        scored[#scored + 1], scored[#scored + 2] = score, id
        dropped[#dropped + 1] = id
      else
        rescore(id, score, record('w', r, score))
      end
    end
  end
  for _ = 1, extends do
    i = i + 1
    if holds(i) then rescore(ARGV[base + i], finish, record('l', mine(), finish)) end
  end
end

variadic('ZREM', timeline, gone, 1, #gone)
variadic('HDEL', payloads, gone, 1, #gone)
variadic('HDEL', leases, gone, 1, #gone)
variadic('HDEL', leases, dropped, 1, #dropped)
variadic('ZADD', timeline, scored, 1, #scored)
variadic('HSET', leases, recorded, 1, #recorded)

-- The claim; hand_over.lua has another one.
local ids, found, healed = {}, 0, 0
local due = {}
if flow then
  want = flow.before({want = want, now = now, finish = finish, base = base, total = total,
    releases = releases, extends = extends, all = good == total, valid = valid})
end
if by_key then
  by_key.settled(valid, good == total, base, acks, nacks, rejects, releases, want, now_text)
end
if want > 0 and by_key then
  due = by_key.due(want, now, now_text)
elseif want > 0 then
  local latest = flow and now_text or text(now + ARGV.ahead)
  due = redis.call('ZRANGEBYSCORE', timeline, '-inf', latest, 'WITHSCORES', 'LIMIT', '0', want)
end
local claimed, c = {}, 0 -- for the replay
if #due > 0 then
  for k = 1, #due / 2 do ids[k] = due[2 * k - 1] end
  -- Sizes are checked first, so that a too large payload is never read. The check
  -- takes a tenth of the exchange's time, so these loops avoid temporary strings.
  local call = redis.call
  local bytes, sizes, large, empty = 0, {}, false, false
  while found < #ids and bytes < max_bytes do
    local size = call('HSTRLEN', payloads, ids[found + 1])
    if size > max_payload then
      large = true
    else
      empty = empty or size == 0
      bytes = bytes + size
      if found > 0 and bytes > max_bytes then break end
    end
    found = found + 1
    sizes[found] = size
  end
  local bodies = {}
  apart = not empty and leaves_out(bytes, apart_from)
  if apart then
    for k = 1, found do bodies[k] = '' end
  elseif large then
    for k = 1, found do
      if sizes[k] <= max_payload then bodies[k] = redis.call('HGET', payloads, ids[k]) end
    end
  else
    bodies = collect('HMGET', payloads, ids, 1, found)
  end
  -- Without leases there are no records to read.
  local records = {}
  if found < 8 or call('HLEN', leases) > call('HEXISTS', leases, '') then
    records = collect('HMGET', leases, ids, 1, found)
  end
  gone, scored, recorded = {}, {}, {'', SENTINEL}
  local s, record_of = 0, by_key and by_key.record or current
  for k = 1, found do
    local id, score, payload = ids[k], due[2 * k], bodies[k]
    local r = (records[k] or by_key) and record_of(records[k], score, id)
    if score == '-inf' then
      healed = healed + 1
      score = now_text
    end
    if sizes[k] > max_payload then
      dead_letter(-2, id, nil, r or {claims = 0, failures = 0, activation = score},
        string.format('the payload has %.0f bytes, more than %.0f', sizes[k], max_payload))
    elseif not payload then
      if number(score) <= now then -- else a handler may still have it
        dead_letter(-3, id, nil, r or {claims = 0, failures = 0, activation = score}, 'payload missing')
      end
    elseif r and max_claims > 0 and r.claims - r.failures >= max_claims then
      dead_letter(-1, id, apart and body(payloads, id, max_payload) or payload, r, 'never settled')
    elseif flow and flow.admits(id, score, r) or not flow and not (r and number(score) > now) then
      local l = lengths[#id] or length(id)
      local rec
      parts[p + 1], parts[p + 4], parts[p + 5], parts[p + 6] = l, '\n', id, payload
      if r then
        -- The score of an expired lease is a token that its holder still has: a
        -- release must not make the token valid again.
        if r.state == 'l' then score = text(number(score) + 1e-6) end
        r.claims, r.before = r.claims + 1, score
        rec = record('l', r, finish)
        parts[p + 2], parts[p + 3] = length(payload), r.claims .. ' ' .. failures_of(r) .. ' ' .. r.activation
      else
        rec = 'l:1:0:' .. score .. ':' .. finish
        parts[p + 2], parts[p + 3] = firsts[#payload] or first_claim(payload), score
      end
      scored[s + 1], scored[s + 2] = finish, id
      recorded[s + 3], recorded[s + 4] = id, rec
      s = s + 2
      p = p + 6
      claimed[c + 1], claimed[c + 2] = l, id
      c = c + 2
      leased = leased + 1
    end
  end
  variadic('ZREM', timeline, gone, 1, #gone)
  variadic('HDEL', payloads, gone, 1, #gone)
  variadic('HDEL', leases, gone, 1, #gone)
  if s > 0 then
    variadic('ZADD', timeline, scored, 1, s)
    variadic('HSET', leases, recorded, 1, s + 2)
  end
end

local woken = by_key and by_key.after(claimed, leased, now_text)
local h = head(timeline)
local held = flow and flow.after(now, h, finish, claimed) or '0'
local orphans = '0'
local unfinished = by_key and by_key.unfinished()
-- The hinted timers have been claimed: the next schedule must send a hint again.
if (h or math.huge) > now and not unfinished then redis.call('DEL', KEYS.hint) end
if found == 0 and (h or math.huge) > now then
  local live = redis.call('ZCARD', timeline)
  if redis.call('HLEN', payloads) > live or
    redis.call('HLEN', leases) - redis.call('HEXISTS', leases, '') > live or
    by_key and by_key.orphans(live) then
    orphans = '1'
  end
end

local why = join(refusals)
redis.call('SET', KEYS.exchange, ARGV.sequence .. '\n' .. finish .. ' ' .. healed .. ' ' .. refused .. ' ' ..
  #why .. ' ' .. dead_count .. ' ' .. (flow and flow.charges or '-') .. '\n' .. why .. join(kept) .. join(claimed), 'PX', '120000')
if unfinished then
  announce(KEYS.hint, now, now) -- hand_over.lua leaves the next exchange alone
elseif h and (head_before and h < head_before or woken and h <= woken) then
  announce(KEYS.hint, h, now)
end
if by_key then h = by_key.head(h, now) end
return answer(now, h, finish, healed, refused, why, orphans, held, ARGV.known)
