-- Twin of algorithms/fixed_window.go, line by line: see there for what the numbers mean.
return function(p, now, cost, seen, count)
  local events, window = p[1], p[2]
  if count < 0 or count >= MAX_EXACT or seen < 0 or seen > now + MAX_STEP_BACK then
    seen, count = 0, 0
  end
  local t = now > seen and now or seen
  local start = t - t % window
  if seen < start then count = 0 end

  local remaining = events > count and events - count or 0
  local allowed, retry = cost <= remaining, 0
  if allowed then
    count = count + cost
    remaining = remaining - cost
  elseif cost > events then
    retry = NEVER
  else
    retry = start + window - now
  end

  local reset = remaining < events and start + window - now or 0
  return allowed, events, remaining, retry, reset, reset, 0, start, count, 0
end
