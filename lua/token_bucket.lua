-- Twin of algorithms/token_bucket.go, line by line: see there for what the numbers mean.
return function(p, now, cost, anchor, taken, last)
  local burst, events, window = p[1], p[2], p[3]
  if taken < 0 or taken >= MAX_EXACT or anchor < 0 or anchor > last or last > now + MAX_STEP_BACK then
    anchor, taken, last = now, 0, now
  end
  local t = now > last and now or last

  local back = 0
  if taken > 0 then
    local n = floor((t - anchor) / window)
    if n > 0 then
      if n > floor(taken / events) then
        taken = 0
      else
        anchor = anchor + n * window
        taken = taken - n * events
      end
    end
    if taken > 0 then back = muldiv(t - anchor, events, window) end
  end
  if back >= taken then anchor, taken, back = t, 0, 0 end
  if taken > burst + back then taken = burst + back end

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
