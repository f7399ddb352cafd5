-- sliding_window_log.lua is the port of algorithms/sliding_window_log.go; ports.lua says what comes in and out. The log is a
-- Redis list of charges, oldest first, readable with LRANGE. A charge of one event is its time in microseconds and takes ten
-- bytes. A charge of more events is its time and two running sums of the events that charges
-- count for beyond one each: the sum before this charge, and the sum after it. The charges
-- behind it in the list have these sums, too. The sums are 0 again once all charges that
-- added to them have expired. They are modulo 2^52, so they stay exact in a list that never
-- becomes empty.

local function text(time, before, after)
  -- Only this format prints all digits of a double.
  if before == 0 and after == 0 then return string.format('%.0f', time) end
  return string.format('%.0f %.0f %.0f', time, before, after)
end

-- charge returns the time of charge i, and the sums before and after it. It returns nothing
-- if the charge is damaged.
local function charge(key, i, text)
  text = text or call('LINDEX', key, i)
  local time, before, after = tonumber(text), 0, 0
  if not time and text then
    time, before, after = string.match(text, '^(%d+) (%d+) (%d+)$')
    if not time then return end
    time, before, after = tonumber(time), tonumber(before), tonumber(after)
    if before >= MAX_SUM or after >= MAX_SUM then return end
  end
  if time and time >= 0 and time < MAX_EXACT then return time, before, after end
end

-- read returns the size of the log (-1 if the key is not a list); whether it is damaged; now,
-- or the time of the newest charge if that is later; how many charges have left the window;
-- how many events are still in it; the times of the newest and of the oldest charge in it;
-- the sum after the newest, and the sum before the oldest; and now in the time of the log.
local function read(now, window, key)
  local size, damaged = redis.pcall('LLEN', key), false
  if type(size) ~= 'number' then
    wrongtype(size, 'LLEN', key)
    size, damaged = -1, true
  end
  local t, expired, live, newest, first, sum, before = now, size, 0, nil, nil, 0, 0
  if size > 0 then
    local _, last
    newest, _, last = charge(key, -1)
    if not newest then
      damaged = true
    elseif newest <= now + MAX_STEP_BACK then
      if newest - now > window then
        now = newest + (now - newest) % (2 * window)
        t = now
      end
      if newest > t then t = newest end
      local edge = now - window
      if newest > edge then
        -- Most calls find few expired charges, so look near the old end first, in steps that
        -- double, and then halve the rest.
        local low, high, bound = 0, size, 1
        while bound <= size do
          local time, from = charge(key, bound - 1)
          if time and time > edge then
            high, first, before = bound - 1, time, from
            break
          end
          low, bound = bound, bound * 2
        end
        while low < high do
          local middle = floor((low + high) / 2)
          local time, from = charge(key, middle)
          if time and time > edge then
            high, first, before = middle, time, from
          else
            low = middle + 1
          end
        end
        expired, live, sum = low, size - low + (last - before) % MAX_SUM, last
        if live > MAX_SUM / 2 then -- the sums decrease, so they are damaged
          expired, live, sum, damaged = size, 0, 0, true
        end
        if first > newest then first = newest end -- so that in a damaged list no wait is below 0
      end
    end
  end
  return size, damaged, t, expired, live, newest, first, sum, before, now
end

-- event returns the time of event n in the window, counted from 0, and the charge that
-- contains it.
local function event(key, n, size, expired, live, newest, first, before)
  if n == 0 then return first, expired end
  local low, high = expired, expired + n
  if high >= size then high = size - 1 end
  if live == size - expired then low = high end
  while low < high do
    local middle = floor((low + high) / 2)
    local _, _, after = charge(key, middle)
    if middle + 1 - expired + ((after or 0) - before) % MAX_SUM > n then high = middle else low = middle + 1 end
  end
  local time = charge(key, low)
  if not time or time < first or time > newest then time = newest end
  return time, low
end

take = function(now, cost, events, window, _, _, _, _, key)
  local size, damaged, t, expired, live, newest, oldest, sum, before, moved = read(now, window, key)
  local ahead = t - now
  now = moved

  local remaining = events > live and events - live or 0
  local allowed, retry = cost <= remaining, 0
  -- first is the time of the first event that makes room when it expires. If the limit was
  -- lowered, that is not the oldest event.
  local first = t
  if live == 0 then
    newest = t
  elseif events > 0 then
    first = oldest
    if live > events then first = event(key, live - events, size, expired, live, newest, oldest, before) end
  end
  if allowed then
    remaining = remaining - cost
    if cost > 0 then newest, retry = t, ahead end
  elseif cost > events then
    retry = NEVER
  else
    retry = event(key, live + cost - events - 1, size, expired, live, newest, oldest, before) + window - now
  end

  local next, reset = 0, 0
  if remaining < events then
    next = first + window - now
    reset = newest + window - now
  end
  return allowed, events, remaining, retry, next, reset, 0, expired, t, sum, damaged, now
end

-- The arguments expired, t and sum are those that take returned: how many charges have
-- expired, the time of the new charge, and the sum after the newest charge. RPUSH must come
-- first. When Redis is out of memory, it refuses a command that needs memory, but only until
-- the script has written something.
record = function(key, cost, expired, t, sum)
  if expired < 0 then call('DEL', key) end -- the key is not a list
  call('RPUSH', key, text(t, sum, (sum + cost - 1) % MAX_SUM))
  if expired > 0 then call('LTRIM', key, expired, -1) end
end

if op == 2 then
  -- recent returns how many charges are earlier than a time near the new end, as in Go.
  local function recent(key, size, time)
    local low, high, step = size > MAX_BEHIND and size - MAX_BEHIND - 1 or 0, size, 1
    while size - step > low do
      local i = size - step
      if (charge(key, i) or 0) < time then
        low = i + 1
        break
      end
      high, step = i, step * 2
    end
    while low < high do
      local middle = floor((low + high) / 2)
      if (charge(key, middle) or 0) < time then low = middle + 1 else high = middle end
    end
    return low
  end

  -- late charges more for an earlier request. It drops the oldest events that are too many.
  local function late(key, cost, events, t, size, expired, live, newest, first, sum, before)
    local most = live > 2 * events and live or 2 * events
    local over, part, time, from, after = live + cost - most, 0, nil, nil, nil
    if over > 0 then
      local _, i = event(key, over, size, expired, live, newest, first, before)
      time, from, after = charge(key, i)
      if time then part = over - (i - expired) - (from - before) % MAX_SUM end
      expired = i
    end
    record(key, cost, expired, t, sum)
    if part > 0 then call('LSET', key, 0, text(time, (from + part) % MAX_SUM, after)) end
    return true
  end

  -- refund takes n events off the charges made at a time, as Log.Remove does in Go, and returns how many
  -- it has taken off.
  local function refund(key, n, at)
    local size = redis.pcall('LLEN', key)
    if type(size) ~= 'number' then return wrongtype(size, 'LLEN', key) or 0 end
    local first = recent(key, size, at)
    local behind = recent(key, size, at + 1)
    if first == behind or size - first > MAX_BEHIND then return 0 end
    local time, before = charge(key, first)
    local until_last, _, after = charge(key, behind - 1)
    if not time or not until_last then return 0 end
    -- gone charges are removed, and the sums after them fall by fall.
    local gone, fall = behind - first, (after - before) % MAX_SUM
    if fall == 0 and (n < gone or gone < size) then
      return call('LREM', key, n < gone and -n or -gone, text(time, before, before))
    elseif fall > 0 and size - first > MAX_SHIFTED then
      return 0
    elseif n < gone + fall then -- the last of the charges stays, with what is left
      gone = gone - 1
      fall = n - gone
    end
    local tail = call('LRANGE', key, first + gone, -1)
    local sum = string.format('%.0f', before)
    for i = 1, #tail do
      local at, last = string.match(tail[i], '^(%d+) %d+ (%d+)$')
      after = ((tonumber(last) or 0) - fall) % MAX_SUM
      last = string.format('%.0f', after)
      tail[i] = (at or tail[i]) .. ((before ~= 0 or after ~= 0) and ' ' .. sum .. ' ' .. last or '')
      before, sum = after, last
    end
    -- What is dropped must be sure to come back: a user may have lost the right to write it. So it is written before. And a
    -- list that becomes empty is no key any more: while its slot of the Cluster moves to another node, a script may not
    -- touch such a key again.
    if first == 0 then
      call('RPUSH', key, EXPIRED, unpack(tail))
      call('LTRIM', key, size, -1)
      return gone + fall
    end
    if #tail > 0 then call('RPUSH', key, unpack(tail)) end
    call('LTRIM', key, 0, first - 1)
    if #tail > 0 then call('RPUSH', key, unpack(tail)) end
    return gone + fall
  end

  adjust = function(key, now, at, _, delta, events, window)
    if delta == 0 or events == 0 then return false end
    if delta < 0 then return refund(key, -delta, at) > 0 end
    local size, _, t, expired, live, newest, first, sum, before = read(now, window, key)
    return late(key, delta < events and delta or events, events, t, size, expired, live, newest, first, sum, before)
  end
end
