-- Twin of the buckets in algorithms/token_bucket.go and algorithms/leaky_bucket.go: see
-- there for what the numbers mean. One has lumps and no queue, the other a queue and no
-- lumps.

-- after is the instant at which n have come back since the anchor.
local function after(n, anchor, events, window, lumps)
  if lumps ~= 0 then return anchor + floor((n + events - 1) / events) * window end
  local _, up = muldiv(n, window, events)
  return anchor + up
end

take = function(now, cost, burst, events, window, lumps, queue, longest, anchor, taken, last)
  if taken < 0 or taken >= MAX_EXACT or anchor < 0 or anchor > last or last > now + MAX_STEP_BACK then
    anchor, taken, last = now, 0, now
  end
  local t = now > last and now or last

  -- Drain up to the last charge and clamp, if the limit was lowered; then up to now.
  local clamp, back = taken > burst, 0
  repeat
    local to, again = clamp and last or t, clamp
    back = 0
    if taken > 0 then
      local n = floor((to - anchor) / window)
      if n > floor(taken / events) then
        taken = 0
      else
        if n > 0 then
          anchor = anchor + n * window
          taken = taken - n * events
        end
        if lumps == 0 then back = muldiv(to - anchor, events, window) end
      end
    end
    if back >= taken then anchor, taken, back = to, 0, 0 end
    if clamp and taken > burst + back then taken = burst + back end
    clamp = false
  until not again

  local remaining, delay, wait = burst - (taken - back), 0, 0
  if queue ~= 0 and taken > 0 and cost > 0 then delay = after(taken, anchor, events, window, 0) - now end
  local over = longest > 0 and delay >= longest
  local allowed = cost <= remaining and not over
  if allowed then
    taken = taken + cost
    remaining = remaining - cost
  else
    if cost > burst then
      wait = NEVER
    elseif cost > remaining then
      wait = after(back + cost - remaining, anchor, events, window, lumps) - now
    end
    if over and wait ~= NEVER and wait < delay - longest + 1 then wait = delay - longest + 1 end
    delay = 0
  end

  local next, reset = 0, 0
  if remaining < burst then
    next = after(back + 1, anchor, events, window, lumps) - now
    reset = after(taken, anchor, events, window, lumps) - now
  end
  return allowed, burst, remaining, wait, next, reset, delay, anchor, taken, t
end
