-- sliding_window_counter.lua is the port of algorithms/sliding_window_counter.go; see there for what the numbers mean,
-- and ports.lua for what comes in and out.

take = function(now, cost, events, window, _, _, _, _, last, current, previous)
  if current < 0 or current >= MAX_EXACT or previous < 0 or previous >= MAX_EXACT or last < 0 or last >= MAX_EXACT then
    last, current, previous = 0, 0, 0
  end
  if last - now > window then last = last - (last - now + (now - last) % (4 * window)) end
  local t = now > last and now or last
  local start = t - t % window
  local counted = last - last % window
  if counted ~= start then
    if counted == start - window then
      current, previous = 0, current
    else
      current, previous = 0, 0
    end
  end

  local left = start + window - t
  local used = previous * left
  if used < MAX_EXACT then
    local part = used % window
    used = current + (used - part) / window + (part > 0 and 1 or 0)
  else
    --[[muldiv]]
    local _, covered = muldiv(previous, left, window)
    used = current + covered
  end
  local remaining = events > used and events - used or 0
  local allowed = cost <= remaining
  if allowed then current = current + cost end
  return allowed, remaining, start + 2 * window, t, current, previous
end

if op == 2 then
  adjust = function(now, at, _, delta, events, window, ...)
    if events == 0 then return end
    local _, _, _, t, current, previous = take(now, 0, events, window, ...)
    local start = t - t % window
    local function add(n)
      n = n + delta
      return n < 0 and 0 or n > MAX_EXACT / 2 and MAX_EXACT / 2 or n
    end
    if delta > 0 or at >= start and current > 0 then return t, add(current), previous end
    if at >= start - window and at < start and previous > 0 then return t, current, add(previous) end
  end
end
