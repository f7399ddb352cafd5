-- Twin of algorithms/fixed_window.go, line by line: see there for what the numbers mean.
-- The window is a; on the calendar a, b, c and d are where windows start, and the last
-- ends at starts.
take = function(now, cost, events, starts, a, b, c, d, seen, count)
  if count < 0 or count >= MAX_EXACT or seen < 0 or seen > now + MAX_STEP_BACK then
    seen, count = 0, 0
  end
  local t = now > seen and now or seen
  local start, finish
  if starts == 0 then
    start = t - t % a
    finish = start + a
  elseif starts == 1 then
    start = seen
    if count == 0 or t >= seen + a then start = t end
    finish = start + a
  else
    start, finish = a, b
    if t >= finish then start, finish = finish, c end
    if t >= finish then start, finish = finish, d end
    if t >= finish then start, finish = finish, starts end
    local length = finish - start
    if t >= finish then
      start = t - (t - finish) % length
      finish = start + length
    elseif t < start then
      start, finish = t, start
    end
  end
  if seen < start then count = 0 end

  local remaining = events > count and events - count or 0
  local allowed, retry = cost <= remaining, 0
  if allowed then
    count = count + cost
    remaining = remaining - cost
  elseif cost > events then
    retry = NEVER
  else
    retry = finish - now
  end

  local reset = remaining < events and finish - now or 0
  return allowed, events, remaining, retry, reset, reset, 0, start, count, 0
end
