-- fixed_window.lua is the port of algorithms/fixed_window.go; see there for what the numbers mean, and ports.lua
-- for what comes in and out. The window is a. For calendar windows, a, b, c and d are the starts of four windows, and the last one
-- ends at starts.
take = function(now, cost, events, starts, a, b, c, d, seen, count)
  if count < 0 or count >= MAX_EXACT or seen < 0 or seen >= MAX_EXACT then
    seen, count = 0, 0
  end
  if seen > now then
    local length = a
    if starts > 1 then
      length = b - a
      length = (length < 3 * DAY and 1 or length < 21 * DAY and 7 or length < 90 * DAY and 30 or 365) * DAY
    end
    if seen - now > length then seen = now - (now - seen) % (2 * length) end
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
      finish = start - (start - t - 1 - (start - t - 1) % length)
      start = finish - length
    end
  end
  if seen < start then count = 0 end

  local remaining = events > count and events - count or 0
  local allowed = cost <= remaining
  if allowed then count = count + cost end
  return allowed, remaining, finish, start, count, 0
end

if op == 2 then
  adjust = function(now, at, _, delta, events, ...)
    if events == 0 then return end
    local _, _, _, start, count = take(now, 0, events, ...)
    if delta > 0 then
      count = count + delta
      if count > MAX_EXACT / 2 then count = MAX_EXACT / 2 end
    elseif at < start or count == 0 or delta == 0 then
      return
    else
      count = count + delta > 0 and count + delta or 0
    end
    return start, count, 0
  end
end
