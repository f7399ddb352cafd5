-- Twin of algorithms/token_bucket.go, line by line: see there for what the numbers mean.

local function drain(anchor, taken, t, events, window)
  local back = 0
  if taken > 0 then
    local n = floor((t - anchor) / window)
    if n > floor(taken / events) then return t, 0, 0 end
    if n > 0 then
      anchor = anchor + n * window
      taken = taken - n * events
    end
    back = muldiv(t - anchor, events, window)
  end
  if back >= taken then return t, 0, 0 end
  return anchor, taken, back
end

return function(p, now, cost, anchor, taken, last)
  local burst, events, window = p[1], p[2], p[3]
  if taken < 0 or taken >= MAX_EXACT or anchor < 0 or anchor > last or last > now + MAX_STEP_BACK then
    anchor, taken, last = now, 0, now
  end
  local t = now > last and now or last
  local back
  if taken > burst then
    anchor, taken, back = drain(anchor, taken, last, events, window)
    if taken > burst + back then taken = burst + back end
  end
  anchor, taken, back = drain(anchor, taken, t, events, window)

  local remaining = burst - (taken - back)
  local allowed, retry = cost <= remaining, 0
  if allowed then
    taken = taken + cost
    remaining = remaining - cost
  elseif cost > burst then
    retry = NEVER
  else
    retry = anchor + muldiv_up(back + cost - remaining, window, events) - now
  end

  local next, reset = 0, 0
  if remaining < burst then
    next = anchor + muldiv_up(back + 1, window, events) - now
    reset = anchor + muldiv_up(taken, window, events) - now
  end
  return allowed, burst, remaining, retry, next, reset, 0, anchor, taken, t
end
