-- bucket.lua is the port of the buckets in algorithms/bucket.go and algorithms/debt.go,
-- which say what the numbers mean; what comes in and out is in ports.lua. The token
-- bucket never has a queue, and the leaky bucket never has lumps.

-- Beyond what ports.lua describes, this returns how many tokens are back since the anchor, and the time of the
-- last charge before.
take = function(now, cost, burst, events, window, lumps, queue, longest, anchor, taken, last)
  if taken < 0 or taken >= MAX_EXACT or anchor < 0 or anchor > last or last >= MAX_EXACT or
    taken * window > events * 1e15 then
    anchor, taken, last = now, 0, now
  end
  local t = now
  if last > now then
    local counts
    if lumps ~= 0 then
      counts = anchor + (taken + -taken % events) / events * window - last
    else
      --[[muldiv]]
      local _, up = muldiv(taken, window, events)
      counts = anchor + up - last
    end
    if last - now > counts then
      local back = last - now
      if counts > 0 then back = back + -back % (2 * counts) end
      anchor, last = anchor - back, last - back
      if counts <= 0 or anchor < 0 then taken = 0 end
    end
    if last > now then t = last end
  end

  local back = 0
  if taken > 0 then
    local part = (t - anchor) % window
    local n = (t - anchor - part) / window * events
    if n > taken then
      taken = 0
    else
      anchor, taken = t - part, taken - n
      if lumps == 0 then
        back = part * events
        if back < MAX_EXACT then
          back = (back - back % window) / window
        else
          --[[muldiv]]
          back = muldiv(part, events, window)
        end
      end
    end
  end
  if back >= taken then anchor, taken, back = t, 0, 0 end

  local remaining, delay, over = burst - (taken - back), 0, false
  if remaining < 0 then remaining = 0 end
  if queue ~= 0 and taken > 0 and cost > 0 then
    --[[muldiv]]
    local _, up = muldiv(taken, window, events)
    delay = anchor + up - now
    over = longest > 0 and delay >= longest
  end
  local allowed, full = cost <= remaining and not over, t
  if allowed then
    taken = taken + cost
    full = anchor + (lumps == 0 and taken or taken + -taken % events) * window / events
  end
  return allowed, remaining, full, anchor, taken, t, back, last
end

if op == 2 then
  -- turn_of returns the instant at which n tokens have come back since the anchor.
  local function turn_of(n, anchor, events, window)
    local _, up = muldiv(n, window, events)
    return anchor + up
  end

  local function windows(elapsed, window)
    return elapsed > 0 and floor((elapsed + window - 1) / window) or 0
  end

  local function keep(burst, events, window, lumps, anchor, taken, last)
    local _
    _, _, _, anchor, taken = take(last, 0, burst, events, window, lumps, 0, 0, anchor, taken, last)
    return anchor, taken, last
  end

  adjust = function(now, at, turn, delta, burst, events, window, lumps, queue, hold, anchor, taken, last)
    if burst == 0 or delta == 0 then return end
    local t, back, _
    _, _, _, anchor, taken, t, back, last = take(now, 0, burst, events, window, lumps, queue, 0, anchor, taken, last)
    if delta > 0 then
      local most = events * DAY < window * (MAX_EXACT / 2) and muldiv(DAY, events, window) or MAX_EXACT / 2
      local room = burst + most - (taken - back)
      if delta > 1000000000000 then delta = 1000000000000 end
      if room <= 0 then return end
      if delta > room then delta = room end
      return keep(burst, events, window, lumps, anchor, taken + delta, t)
    end
    if taken == 0 then return end
    local cost = -delta
    if queue ~= 0 then
      local n = windows(cost - taken, events)
      anchor, taken = anchor - n * window, taken + n * events
      if turn_of(taken - cost, anchor, events, window) ~= turn then return end
    else
      if cost > burst then cost = burst end
      if hold == 0 then turn = at end
      local elapsed = last > turn and t + hold - at or 0
      if elapsed > 0 then
        if lumps ~= 0 then
          local n = windows(anchor - at, window)
          if n > floor(cost / events) then return end
          cost = cost - n * events
        else
          local _, whole = muldiv(cost, window, events)
          if elapsed >= whole then return end
          anchor = anchor + elapsed
        end
      end
    end
    local n = windows(anchor - last, window)
    anchor, taken = anchor - n * window, taken - cost + n * events
    if anchor < 0 then return end
    return keep(burst, events, window, lumps, anchor, taken, last)
  end
end
