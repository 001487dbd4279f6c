-- Waking where keys take turns: put after keys_order.lua, before fair_turns.lua, which gives
-- keyed.turn_score. A timer that becomes due has the instant of the turn of its key as its score.
--
-- Takes: to_wake waking

do
  -- write_due is that of keys_order.lua.
  function keyed.write_due(now_text)
    local ids = {}
    for _, id in ipairs(to_wake) do
      if waking[id] then ids[#ids + 1], waking[id] = id, nil end
    end
    to_wake = {}
    if #ids == 0 then return end
    local stored = collect('HMGET', key_leases, ids, 1, #ids)
    local scored, recorded = {}, {'', SENTINEL}
    for i, id in ipairs(ids) do
      local r = keyed.woken_record(id, stored[i])
      local score = keyed.turn_score(id, r) or now_text
      scored[2 * i - 1], scored[2 * i] = score, id
      recorded[2 * i + 1], recorded[2 * i + 2] = id, record('w', r, score)
    end
    variadic('ZADD', key_timeline, scored, 1, #scored)
    variadic('HSET', key_leases, recorded, 1, #recorded)
  end
end
