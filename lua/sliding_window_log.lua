-- Twin of algorithms/sliding_window_log.go. The log is a Redis list of times in
-- microseconds, oldest first: ten bytes an event, and readable with LRANGE.

local function read(now, window, key)
  local size, damaged = redis.pcall('LLEN', key), false
  if type(size) ~= 'number' then size, damaged = 0, true end
  local function at(i)
    local time = tonumber(call('LINDEX', key, i))
    if time and time >= 0 and time < MAX_EXACT then return time end
  end

  -- The time that counts, and how many events have left the window.
  local t, expired, newest = now, 0, nil
  if size > 0 then
    newest = at(-1)
    if not newest then
      size, damaged = 0, true
    elseif newest > now + MAX_STEP_BACK then
      expired = size
    else
      if newest > t then t = newest end
      local edge = t - window
      if newest <= edge then
        expired = size
      else
        -- Most calls find few expired events: look near the old end first, in steps
        -- that double, then halve what is left.
        local bound = 1
        while bound <= size and (at(bound - 1) or 0) <= edge do bound = bound * 2 end
        expired = floor(bound / 2)
        local high = bound - 1 < size and bound - 1 or size
        while expired < high do
          local middle = floor((expired + high) / 2)
          if (at(middle) or 0) <= edge then expired = middle + 1 else high = middle end
        end
      end
    end
  end
  return size, damaged, t, expired, newest, at
end

take = function(now, cost, events, window, _, _, _, _, key)
  local size, damaged, t, expired, newest, at = read(now, window, key)
  local live = size - expired

  local remaining = events > live and events - live or 0
  local allowed, retry = cost <= remaining, 0
  -- The first event whose end makes room; under a limit that was lowered not the oldest.
  local first = t
  if live == 0 then
    newest = t
  elseif events > 0 then
    first = at(live <= events and expired or expired + live - events) or t
    if first > t then first = t end
  end
  if allowed then
    remaining = remaining - cost
    if cost > 0 then newest = t end
  elseif cost > events then
    retry = NEVER
  else
    retry = (at(expired + live + cost - events - 1) or t) + window - now
  end

  local next, reset = 0, 0
  if remaining < events then
    next = first + window - now
    reset = newest + window - now
  end
  return allowed, events, remaining, retry, next, reset, 0, expired, t, live, damaged
end

-- What take returned last comes back: how many have expired, the time that counts,
-- and how many were live.
record = function(key, cost, expired, t, live)
  if live == 0 then
    call('DEL', key)
  elseif expired > 0 then
    call('LTRIM', key, expired, -1)
  end
  -- A double is printed with all its digits only by this format.
  local time = string.format('%.0f', t)
  if cost == 1 then
    call('RPUSH', key, time)
    return
  end
  -- unpack has room for some thousand values.
  local times, chunk = {}, cost < 4000 and cost or 4000
  for i = 1, chunk do times[i] = time end
  while cost > 0 do
    if chunk > cost then chunk = cost end
    call('RPUSH', key, unpack(times, 1, chunk))
    cost = cost - chunk
  end
end

if op == 2 then
  correct = function(key, now, at, _, delta, events, window)
    local size, _, t, expired = read(now, window, key)
    if delta < 0 then
      return size > 0 and call('LREM', key, delta, string.format('%.0f', at)) > 0
    elseif delta == 0 or events == 0 then
      return false
    end
    local live = size - expired
    local cost = delta < events and delta or events
    record(key, cost, expired, t, live)
    if live + cost > 2 * events then call('LTRIM', key, live + cost - 2 * events, -1) end
    return true
  end
end
