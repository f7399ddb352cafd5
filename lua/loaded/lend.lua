-- Made of lua/lend.lua by "make scripts". Do not edit.
local call, floor, pack, unpack_struct = redis.call, math.floor, struct.pack, struct.unpack
local find, sub = string.find, string.sub
local now
do
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local function wrongtype(reply, ...)
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then call(...) end
end
local function nothing(try, key)
  local found = redis.pcall('GET', key)
  if type(found) == 'table' then wrongtype(found, 'GET', key) end
  return try('SET', key, '', found and 'NX' or 'XX')
end
local careful, unable, full, unlock, dry = ARGV[2]
if careful then
  local done = nothing(redis.pcall, KEYS[1])
  unable = type(done) == 'table' and done.err and string.sub(done.err, 1, 300)
  full = unable and string.find(unable, 'OOM command', 1, true)
  if full then
    unlock = function(key) call('PEXPIRE', key, 1000--[[MARGIN_MS]]) end -- it returns nil, because it is needed once
  end
end
local booked = {}
local function aside(read)
  return function(command, key, ...)
    if booked[key] and command == 'LLEN' then return read(command, key) - 1 end
    if booked[key] and command == 'LINDEX' and (...) == -1 then return read(command, key, -2) end
    return read(command, key, ...)
  end
end
local function port(name, op)
  local take, record, adjust, spares, careful
  local call, redis = call, redis
  if dry then call, redis = aside(call), { pcall = aside(redis.pcall) } end
  if name == 'token_bucket' or name == 'leaky_bucket' then
    local function muldiv(a, b, c)
      local p = a * b
      local q = math.floor(p / c)
      if p < 9007199254740992 then return q, q * c < p and q + 1 or q end
      local function error_of(x, y, xy)
        local u, v = 134217729 * x, 134217729 * y
        local xh, yh = u - (u - x), v - (v - y)
        local xl, yl = x - xh, y - yh
        return ((xh * yh - xy) + xh * yl + xl * yh) + xl * yl
      end
      local qc = q * c
      local r = (p - qc) + (error_of(a, b, p) - error_of(q, c, qc))
      while r < 0 do q, r = q - 1, r + c end
      while r >= c do q, r = q + 1, r - c end
      return q, r > 0 and q + 1 or q
    end
    local function after(n, anchor, events, window, lumps)
      if lumps ~= 0 then return anchor + floor((n + events - 1) / events) * window end
      local _, up = muldiv(n, window, events)
      return anchor + up
    end
    take = function(now, cost, burst, events, window, lumps, queue, longest, anchor, taken, last)
      if taken < 0 or taken >= 9007199254740992 or anchor < 0 or anchor > last or last >= 9007199254740992 or
        taken * window > events * 1e15 then
        anchor, taken, last = now, 0, now
      end
      local t = now
      if last > now then
        local counts
        if lumps ~= 0 then
          counts = anchor + (taken + -taken % events) / events * window - last
        else
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
            if back < 9007199254740992 then
              back = (back - back % window) / window
            else
              back = muldiv(part, events, window)
            end
          end
        end
      end
      if back >= taken then anchor, taken, back = t, 0, 0 end
      local remaining, delay, over = burst - (taken - back), 0, false
      if remaining < 0 then remaining = 0 end
      if queue ~= 0 and taken > 0 and cost > 0 then
        local _, up = muldiv(taken, window, events)
        delay = anchor + up - now
        over = longest > 0 and delay >= longest
      end
      local allowed, full = cost <= remaining and not over, t
      if allowed then
        taken = taken + cost
        full = anchor + (lumps == 0 and taken or taken + -taken % events) * window / events
      end
      local owed, wait = taken - burst, 0 -- what must come back since the anchor before more is allowed
      if allowed then
        remaining = remaining - cost
        if cost > 0 then wait = t - now end
      else
        if cost > burst then
          wait = -1
        elseif cost > remaining then
          wait = after(owed + cost, anchor, events, window, lumps) - now
        end
        if over and wait ~= -1 and wait < delay - longest + 1 then wait = delay - longest + 1 end
        delay = 0
      end
      local next, reset = 0, 0
      if remaining < burst then
        next = after((back > owed and back or owed) + 1, anchor, events, window, lumps) - now
        reset = after(taken, anchor, events, window, lumps) - now
      end
      return allowed, burst, remaining, wait, next, reset, delay, anchor, taken, t, nil, back, last
    end
    if op == 2 then
      local function windows(elapsed, window)
        return elapsed > 0 and floor((elapsed + window - 1) / window) or 0
      end
      local function keep(burst, events, window, lumps, anchor, taken, last)
        local _
        _, _, _, _, _, _, _, anchor, taken = take(last, 0, burst, events, window, lumps, 0, 0, anchor, taken, last)
        return anchor, taken, last
      end
      adjust = function(now, at, turn, delta, burst, events, window, lumps, queue, _, anchor, taken, last)
        if burst == 0 or delta == 0 then return end
        local t, back
        _, _, _, _, _, _, _, anchor, taken, t, _, back, last = take(now, 0, burst, events, window, lumps, queue, 0, anchor, taken, last)
        if delta > 0 then
          local most = events * 86400000000 < window * (9007199254740992 / 2) and muldiv(86400000000, events, window) or 9007199254740992 / 2
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
          if after(taken - cost, anchor, events, window, 0) ~= turn then return end
        else
          if cost > burst then cost = burst end
          local elapsed = last > at and t - at or 0
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
  elseif name == 'fixed_window' then
    take = function(now, cost, events, starts, a, b, c, d, seen, count)
      if count < 0 or count >= 9007199254740992 or seen < 0 or seen >= 9007199254740992 then
        seen, count = 0, 0
      end
      if seen > now then
        local length = a
        if starts > 1 then
          length = b - a
          length = (length < 3 * 86400000000 and 1 or length < 21 * 86400000000 and 7 or length < 90 * 86400000000 and 30 or 365) * 86400000000
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
      local retry = 0
      if allowed then
        remaining = remaining - cost
        if cost > 0 and start > now then retry = start - now end
      elseif cost > events then
        retry = -1
      else
        retry = finish - now
      end
      local reset = remaining < events and finish - now or 0
      return allowed, events, remaining, retry, reset, reset, 0, start, count, 0
    end
    if op == 2 then
      adjust = function(now, at, _, delta, events, ...)
        if events == 0 then return end
        local _, _, _, _, _, _, _, start, count = take(now, 0, events, ...)
        if delta > 0 then
          count = count + delta
          if count > 9007199254740992 / 2 then count = 9007199254740992 / 2 end
        elseif at < start or count == 0 or delta == 0 then
          return
        else
          count = count + delta > 0 and count + delta or 0
        end
        return start, count, 0
      end
    end
  elseif name == 'sliding_window_counter' then
    local function muldiv(a, b, c)
      local p = a * b
      local q = math.floor(p / c)
      if p < 9007199254740992 then return q, q * c < p and q + 1 or q end
      local function error_of(x, y, xy)
        local u, v = 134217729 * x, 134217729 * y
        local xh, yh = u - (u - x), v - (v - y)
        local xl, yl = x - xh, y - yh
        return ((xh * yh - xy) + xh * yl + xl * yh) + xl * yl
      end
      local qc = q * c
      local r = (p - qc) + (error_of(a, b, p) - error_of(q, c, qc))
      while r < 0 do q, r = q - 1, r + c end
      while r >= c do q, r = q + 1, r - c end
      return q, r > 0 and q + 1 or q
    end
    local function until_used(target, start, window, current, previous)
      if target >= current then
        return start + window - (muldiv(target - current, window, previous))
      end
      return start + 2 * window - (muldiv(target, window, current))
    end
    take = function(now, cost, events, window, _, _, _, _, last, current, previous)
      if current < 0 or current >= 9007199254740992 or previous < 0 or previous >= 9007199254740992 or last < 0 or last >= 9007199254740992 then
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
      if used < 9007199254740992 then
        local part = used % window
        used = current + (used - part) / window + (part > 0 and 1 or 0)
      else
        local _, covered = muldiv(previous, left, window)
        used = current + covered
      end
      local remaining = events > used and events - used or 0
      local allowed = cost <= remaining
      if allowed then current = current + cost end
      local retry = 0
      if allowed then
        used = used + cost
        remaining = remaining - cost
        if cost > 0 then retry = t - now end
      elseif cost > events then
        retry = -1
      else
        retry = until_used(events - cost, start, window, current, previous) - now
      end
      local next, reset = 0, 0
      if remaining < events then
        next = until_used((used < events and used or events) - 1, start, window, current, previous) - now
        reset = start + (current > 0 and 2 or 1) * window - now -- until nothing counts as used
      end
      return allowed, events, remaining, retry, next, reset, 0, t, current, previous
    end
    if op == 2 then
      adjust = function(now, at, _, delta, events, window, ...)
        if events == 0 then return end
        local _, _, _, _, _, _, _, t, current, previous = take(now, 0, events, window, ...)
        local start = t - t % window
        local function add(n)
          n = n + delta
          return n < 0 and 0 or n > 9007199254740992 / 2 and 9007199254740992 / 2 or n
        end
        if delta > 0 or at >= start and current > 0 then return t, add(current), previous end
        if at >= start - window and at < start and previous > 0 then return t, current, add(previous) end
      end
    end
  elseif name == 'sliding_window_log' then
    local function text(time, before, after)
      if before == 0 and after == 0 then return string.format('%.0f', time) end
      return string.format('%.0f %.0f %.0f', time, before, after)
    end
    local function charge(key, i, text)
      text = text or call('LINDEX', key, i)
      local time, before, after = tonumber(text), 0, 0
      if not time and text then
        time, before, after = string.match(text, '^(%d+) (%d+) (%d+)$')
        if not time then return end
        time, before, after = tonumber(time), tonumber(before), tonumber(after)
        if before >= 4503599627370496 or after >= 4503599627370496 then return end
      end
      if time and time >= 0 and time < 9007199254740992 then return time, before, after end
    end
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
        elseif newest <= now + 3155760000000000 then
          if newest - now > window then
            now = newest + (now - newest) % (2 * window)
            t = now
          end
          if newest > t then t = newest end
          local edge = t - window
          if newest > edge then
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
            expired, live, sum = low, size - low + (last - before) % 4503599627370496, last
            if live > 4503599627370496 / 2 then -- the sums decrease, so they are damaged
              expired, live, sum, damaged = size, 0, 0, true
            end
            if first > newest then first = newest end -- so that in a damaged list no wait is below 0
          end
        end
      end
      return size, damaged, t, expired, live, newest, first, sum, before, now
    end
    local function event(key, n, size, expired, live, newest, first, before)
      if n == 0 then return first, expired end
      local low, high = expired, expired + n
      if high >= size then high = size - 1 end
      if live == size - expired then low = high end
      while low < high do
        local middle = floor((low + high) / 2)
        local _, _, after = charge(key, middle)
        if middle + 1 - expired + ((after or 0) - before) % 4503599627370496 > n then high = middle else low = middle + 1 end
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
        retry = -1
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
    record = function(key, cost, expired, t, sum)
      if expired < 0 then call('DEL', key) end -- the key is not a list
      call('RPUSH', key, text(t, sum, (sum + cost - 1) % 4503599627370496))
      if expired > 0 then call('LTRIM', key, expired, -1) end
    end
    if careful then
      spares = function(expired) return expired > 0 end
    end
    if op == 2 then
      local function recent(key, size, time)
        local low, high, step = size > 10000 and size - 10000 - 1 or 0, size, 1
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
      local function late(key, cost, events, t, size, expired, live, newest, first, sum, before)
        local most = live > 2 * events and live or 2 * events
        local over, part, time, from, after = live + cost - most, 0, nil, nil, nil
        if over > 0 then
          local _, i = event(key, over, size, expired, live, newest, first, before)
          time, from, after = charge(key, i)
          if time then part = over - (i - expired) - (from - before) % 4503599627370496 end
          expired = i
        end
        record(key, cost, expired, t, sum)
        if part > 0 then call('LSET', key, 0, text(time, (from + part) % 4503599627370496, after)) end
        return true
      end
      local function refund(key, n, at, later)
        local size = redis.pcall('LLEN', key)
        if type(size) ~= 'number' then return wrongtype(size, 'LLEN', key) or 0 end
        local first = recent(key, size, at)
        if later then at = charge(key, first) or at end
        local behind = recent(key, size, at + 1)
        if first == behind or size - first > 10000 then return 0 end
        local time, before = charge(key, first)
        local until_last, _, after = charge(key, behind - 1)
        if not time or not until_last then return 0 end
        local gone, fall = behind - first, (after - before) % 4503599627370496
        if fall == 0 and (n < gone or gone < size) then
          return call('LREM', key, n < gone and -n or -gone, text(time, before, before))
        elseif fall > 0 and size - first > 200 then
          return 0
        elseif n < gone + fall then -- the last of the charges stays, with what is left
          gone = gone - 1
          fall = n - gone
        end
        local tail = call('LRANGE', key, first + gone, -1)
        local sum = string.format('%.0f', before)
        for i = 1, #tail do
          local at, last = string.match(tail[i], '^(%d+) %d+ (%d+)$')
          after = ((tonumber(last) or 0) - fall) % 4503599627370496
          last = string.format('%.0f', after)
          tail[i] = (at or tail[i]) .. ((before ~= 0 or after ~= 0) and ' ' .. sum .. ' ' .. last or '')
          before, sum = after, last
        end
        if #tail > 0 or first == 0 then call('LTRIM', key, 0, -1) end
        if first == 0 then
          call('RPUSH', key, '0', unpack(tail))
          call('LTRIM', key, size, -1)
          return gone + fall
        end
        if #tail > 0 then call('RPUSH', key, unpack(tail)) end
        call('LTRIM', key, 0, first - 1)
        if #tail > 0 then call('RPUSH', key, unpack(tail)) end
        return gone + fall
      end
      adjust = function(key, now, at, turn, delta, events, window)
        if delta == 0 or events == 0 then return false end
        if turn < 0 and at <= now - window then return false end -- it may have left the window
        if delta < 0 then
          local left, most = -delta, turn < 0 and 16 or 1
          for _ = 1, most do
            local taken = refund(key, left, at, turn < 0)
            left = left - taken
            if taken == 0 or left == 0 then break end
          end
          return left < -delta
        end
        local size, _, t, expired, live, newest, first, sum, before = read(now, window, key)
        return late(key, delta < events and delta or events, events, t, size, expired, live, newest, first, sum, before)
      end
    end
  elseif name == 'concurrency' then
    local function precise(n) return string.format('%.0f', n) end
    local function horizon(now) return precise(now + 3155760000000000) end
    local function shorten(key, now, lease)
      local late, ends = call('ZRANGEBYSCORE', key, '(' .. precise(now + 3600000000), horizon(now)), precise(now + lease)
      for _, name in ipairs(late) do call('ZADD', key, ends, name) end
    end
    take = function(now, cost, events, lease, _, _, _, _, key)
      local from, to = '(' .. precise(now), horizon(now)
      local live, damaged = redis.pcall('ZCOUNT', key, from, to), false
      if type(live) ~= 'number' then
        wrongtype(live, 'ZCOUNT', key, from, to)
        live, damaged = 0, true
      end
      local function ends(index)
        local found = call('ZRANGEBYSCORE', key, from, to, 'WITHSCORES', 'LIMIT', index, 1)
        return tonumber(found[2]) or now
      end
      local remaining = events > live and events - live or 0
      local allowed = cost <= remaining and cost <= 1000
      local next, reset, retry = 0, 0, 0
      if live > 0 then
        local latest = call('ZREVRANGEBYSCORE', key, to, from, 'WITHSCORES', 'LIMIT', 0, 1)
        reset = tonumber(latest[2]) - now
        if reset > 3600000000 and not allowed and not unable then
          shorten(key, now, lease)
          reset = ends(live - 1) - now
        end
        next = ends(live > events and live - events or 0) - now
      end
      if allowed then
        if cost > 0 then
          remaining = remaining - cost
          if live == 0 or next > lease then next = lease end
          if reset < lease then reset = lease end
        end
      elseif cost > events or cost > 1000 then
        retry = -1
      else
        retry = ends(live + cost - events - 1) - now
      end
      if remaining == events then next, reset = 0, 0 end
      return allowed, events, remaining, retry, next, reset, 0, now, lease, horizon(now), damaged
    end
    local function card(key)
      local n = redis.pcall('ZCARD', key)
      return type(n) == 'number' and n or wrongtype(n, 'ZCARD', key)
    end
    record = function(key, cost, now, lease, horizon, lease_id)
      if not card(key) then call('DEL', key) end
      local ends = precise(now + lease)
      local members = { ends, lease_id }
      for i = 2, cost do members[2 * i - 1], members[2 * i] = ends, lease_id .. '#' .. i end
      call('ZADD', key, unpack(members))
      call('ZREMRANGEBYSCORE', key, '-inf', precise(now))
      call('ZREMRANGEBYSCORE', key, '(' .. horizon, '+inf')
    end
    if op == 2 then
      adjust = function(key, _, _, _, delta, _, _, _, _, _, _, lease_id)
        local held = delta < 0 and card(key)
        if not held or call('ZSCORE', key, lease_id .. '#' .. (1 - delta)) then return false end
        local last = held > 1 and lease_id .. '#' .. held or lease_id
        local stays = held <= -delta and tonumber(call('ZSCORE', key, last) or 0) > 0
        if stays then
          call('ZREMRANGEBYSCORE', key, '(0', 0) -- it removes none, but a full Redis refuses a first write that may need memory
          call('ZADD', key, 0, last)
        end
        local ended, name = 0, lease_id
        while ended < -delta and name ~= last and call('ZREM', key, name) == 1 do
          ended = ended + 1
          name = lease_id .. '#' .. (ended + 1)
        end
        return stays or ended > 0
      end
    end
  else -- of another module
    local function muldiv(a, b, c)
      local p = a * b
      local q = math.floor(p / c)
      if p < 9007199254740992 then return q, q * c < p and q + 1 or q end
      local function error_of(x, y, xy)
        local u, v = 134217729 * x, 134217729 * y
        local xh, yh = u - (u - x), v - (v - y)
        local xl, yl = x - xh, y - yh
        return ((xh * yh - xy) + xh * yl + xl * yh) + xl * yl
      end
      local qc = q * c
      local r = (p - qc) + (error_of(a, b, p) - error_of(q, c, qc))
      while r < 0 do q, r = q - 1, r + c end
      while r >= c do q, r = q + 1, r - c end
      return q, r > 0 and q + 1 or q
    end
    --[[others]]
  end
  return take, record, adjust
end
local function charged(name, now, cost, p2, p3, p4, p5, p6, s1, s2, s3)
  local p1 = 9007199254740992
  local ok, room, till, x, y, z
  if name == 'token_bucket' or name == 'leaky_bucket' then
      if s2 < 0 or s2 >= 9007199254740992 or s1 < 0 or s1 > s3 or s3 >= 9007199254740992 or
        s2 * p3 > p2 * 1e15 then
        s1, s2, s3 = now, 0, now
      end
      local t = now
      if s3 > now then
        local counts
        if p4 ~= 0 then
          counts = s1 + (s2 + -s2 % p2) / p2 * p3 - s3
        else
          local function muldiv(a, b, c)
            local p = a * b
            local q = math.floor(p / c)
            if p < 9007199254740992 then return q, q * c < p and q + 1 or q end
            local function error_of(x, y, xy)
              local u, v = 134217729 * x, 134217729 * y
              local xh, yh = u - (u - x), v - (v - y)
              local xl, yl = x - xh, y - yh
              return ((xh * yh - xy) + xh * yl + xl * yh) + xl * yl
            end
            local qc = q * c
            local r = (p - qc) + (error_of(a, b, p) - error_of(q, c, qc))
            while r < 0 do q, r = q - 1, r + c end
            while r >= c do q, r = q + 1, r - c end
            return q, r > 0 and q + 1 or q
          end
          local _, up = muldiv(s2, p3, p2)
          counts = s1 + up - s3
        end
        if s3 - now > counts then
          local back = s3 - now
          if counts > 0 then back = back + -back % (2 * counts) end
          s1, s3 = s1 - back, s3 - back
          if counts <= 0 or s1 < 0 then s2 = 0 end
        end
        if s3 > now then t = s3 end
      end
      local back = 0
      if s2 > 0 then
        local part = (t - s1) % p3
        local n = (t - s1 - part) / p3 * p2
        if n > s2 then
          s2 = 0
        else
          s1, s2 = t - part, s2 - n
          if p4 == 0 then
            back = part * p2
            if back < 9007199254740992 then
              back = (back - back % p3) / p3
            else
              local function muldiv(a, b, c)
                local p = a * b
                local q = math.floor(p / c)
                if p < 9007199254740992 then return q, q * c < p and q + 1 or q end
                local function error_of(x, y, xy)
                  local u, v = 134217729 * x, 134217729 * y
                  local xh, yh = u - (u - x), v - (v - y)
                  local xl, yl = x - xh, y - yh
                  return ((xh * yh - xy) + xh * yl + xl * yh) + xl * yl
                end
                local qc = q * c
                local r = (p - qc) + (error_of(a, b, p) - error_of(q, c, qc))
                while r < 0 do q, r = q - 1, r + c end
                while r >= c do q, r = q + 1, r - c end
                return q, r > 0 and q + 1 or q
              end
              back = muldiv(part, p2, p3)
            end
          end
        end
      end
      if back >= s2 then s1, s2, back = t, 0, 0 end
      local remaining, delay, over = p1 - (s2 - back), 0, false
      if remaining < 0 then remaining = 0 end
      if p5 ~= 0 and s2 > 0 and cost > 0 then
        local function muldiv(a, b, c)
          local p = a * b
          local q = math.floor(p / c)
          if p < 9007199254740992 then return q, q * c < p and q + 1 or q end
          local function error_of(x, y, xy)
            local u, v = 134217729 * x, 134217729 * y
            local xh, yh = u - (u - x), v - (v - y)
            local xl, yl = x - xh, y - yh
            return ((xh * yh - xy) + xh * yl + xl * yh) + xl * yl
          end
          local qc = q * c
          local r = (p - qc) + (error_of(a, b, p) - error_of(q, c, qc))
          while r < 0 do q, r = q - 1, r + c end
          while r >= c do q, r = q + 1, r - c end
          return q, r > 0 and q + 1 or q
        end
        local _, up = muldiv(s2, p3, p2)
        delay = s1 + up - now
        over = p6 > 0 and delay >= p6
      end
      local allowed, full = cost <= remaining and not over, t
      if allowed then
        s2 = s2 + cost
        full = s1 + (p4 == 0 and s2 or s2 + -s2 % p2) * p3 / p2
      end
      ok = allowed
    room = remaining
    till = full
    x = s1
    y = s2
    z = t
  elseif name == 'fixed_window' then
      if s2 < 0 or s2 >= 9007199254740992 or s1 < 0 or s1 >= 9007199254740992 then
        s1, s2 = 0, 0
      end
      if s1 > now then
        local length = p3
        if p2 > 1 then
          length = p4 - p3
          length = (length < 3 * 86400000000 and 1 or length < 21 * 86400000000 and 7 or length < 90 * 86400000000 and 30 or 365) * 86400000000
        end
        if s1 - now > length then s1 = now - (now - s1) % (2 * length) end
      end
      local t = now > s1 and now or s1
      local start, finish
      if p2 == 0 then
        start = t - t % p3
        finish = start + p3
      elseif p2 == 1 then
        start = s1
        if s2 == 0 or t >= s1 + p3 then start = t end
        finish = start + p3
      else
        start, finish = p3, p4
        if t >= finish then start, finish = finish, p5 end
        if t >= finish then start, finish = finish, p6 end
        if t >= finish then start, finish = finish, p2 end
        local length = finish - start
        if t >= finish then
          start = t - (t - finish) % length
          finish = start + length
        elseif t < start then
          finish = start - (start - t - 1 - (start - t - 1) % length)
          start = finish - length
        end
      end
      if s1 < start then s2 = 0 end
      local remaining = p1 > s2 and p1 - s2 or 0
      local allowed = cost <= remaining
      if allowed then s2 = s2 + cost end
      ok = allowed
    room = remaining
    till = finish
    x = start
    y = s2
    z = 0
  elseif name == 'sliding_window_counter' then
      if s2 < 0 or s2 >= 9007199254740992 or s3 < 0 or s3 >= 9007199254740992 or s1 < 0 or s1 >= 9007199254740992 then
        s1, s2, s3 = 0, 0, 0
      end
      if s1 - now > p2 then s1 = s1 - (s1 - now + (now - s1) % (4 * p2)) end
      local t = now > s1 and now or s1
      local start = t - t % p2
      local counted = s1 - s1 % p2
      if counted ~= start then
        if counted == start - p2 then
          s2, s3 = 0, s2
        else
          s2, s3 = 0, 0
        end
      end
      local left = start + p2 - t
      local used = s3 * left
      if used < 9007199254740992 then
        local part = used % p2
        used = s2 + (used - part) / p2 + (part > 0 and 1 or 0)
      else
        local function muldiv(a, b, c)
          local p = a * b
          local q = math.floor(p / c)
          if p < 9007199254740992 then return q, q * c < p and q + 1 or q end
          local function error_of(x, y, xy)
            local u, v = 134217729 * x, 134217729 * y
            local xh, yh = u - (u - x), v - (v - y)
            local xl, yl = x - xh, y - yh
            return ((xh * yh - xy) + xh * yl + xl * yh) + xl * yl
          end
          local qc = q * c
          local r = (p - qc) + (error_of(a, b, p) - error_of(q, c, qc))
          while r < 0 do q, r = q - 1, r + c end
          while r >= c do q, r = q + 1, r - c end
          return q, r > 0 and q + 1 or q
        end
        local _, covered = muldiv(s3, left, p2)
        used = s2 + covered
      end
      local remaining = p1 > used and p1 - used or 0
      local allowed = cost <= remaining
      if allowed then s2 = s2 + cost end
      ok = allowed
    room = remaining
    till = start + 2 * p2
    x = t
    y = s2
    z = s3
  else
    local take, op, reset, _
    local floor = math.floor
    local function muldiv(a, b, c)
      local p = a * b
      local q = math.floor(p / c)
      if p < 9007199254740992 then return q, q * c < p and q + 1 or q end
      local function error_of(x, y, xy)
        local u, v = 134217729 * x, 134217729 * y
        local xh, yh = u - (u - x), v - (v - y)
        local xl, yl = x - xh, y - yh
        return ((xh * yh - xy) + xh * yl + xl * yh) + xl * yl
      end
      local qc = q * c
      local r = (p - qc) + (error_of(a, b, p) - error_of(q, c, qc))
      while r < 0 do q, r = q - 1, r + c end
      while r >= c do q, r = q + 1, r - c end
      return q, r > 0 and q + 1 or q
    end
    --[[others]]
    ok, _, room, _, _, reset, _, x, y, z = take(now, cost, p1, p2, p3, p4, p5, p6, s1, s2, s3)
    till = now + reset
  end
  return x, y, z, till
end
local function decide(c, cost, more)
  local take, p1, p2, p3, p4, p5, p6 = c.take, c.p1, c.p2, c.p3, c.p4, c.p5, c.p6
  if not c.record then
    local x, y, z = c.x, c.y, c.z
    if more > 0 then x, y, z = charged(c.name, now, more, p2, p3, p4, p5, p6, x, y, z) end
    local allowed, quota, remaining, retry, next, reset, _
    allowed, quota, remaining, retry, next, reset, _, x, y, z = take(now, cost, p1, p2, p3, p4, p5, p6, x, y, z)
    if more == 0 and allowed then return allowed, quota, remaining, retry, next, reset, x, y, z end
    return allowed, quota, remaining, retry, next, reset
  end
  more = more + c.owed
  local fits = p1 > more and p1 - more or 0
  local allowed, _, remaining, retry, next, reset, _, _, t, _, _, moved = take(now, cost, fits, p2, p3, p4, p5, p6, c.key)
  if more > 0 then
    reset = t + p2 - moved
    if next == 0 then next = reset end
    if retry == -1 and cost <= p1 then retry = reset end
    if p1 == 0 then next, reset = 0, 0 end
  end
  return allowed, p1, remaining, retry, next, reset
end
local function expired(c, at)
  local _, _, _, _, _, _, _, a, b, d = c.take(at, 0, 9007199254740992, c.p2, c.p3, c.p4, c.p5, c.p6, c.key)
  return a, b, d
end
local function unlocked(c)
  if unlock then
    unlock(c.key)
    c.whole = true
  end
end
local function charge(c, at, cost)
  if cost <= 0 then return end
  c.changed = true
  if c.record and dry then
    c.owed, c.entries = c.owed + cost, c.entries + 1
  elseif c.record then
    local a, b, d = expired(c, at)
    unlocked(c)
    c.record(c.key, cost, a, b, d)
  else
    c.x, c.y, c.z = charged(c.name, at, cost, c.p2, c.p3, c.p4, c.p5, c.p6, c.x, c.y, c.z)
  end
end
local NOBODY = string.rep('\0', 8)
local function damaged(c)
  c.damaged, c.whole, c.book, c.loans, c.lent, c.place = true, true, '', 0, 0, false
end
local function open(c)
  local value, at
  if c.record then value, at = redis.pcall('LINDEX', c.key, -1), 2 else value, at = redis.pcall('GET', c.key), 37 end
  if type(value) == 'table' then
    if c.record then wrongtype(value, 'LINDEX', c.key, -1) else wrongtype(value, 'GET', c.key) end
  end
  if c.record then
    if type(value) ~= 'string' or #value % 40 ~= 1 or #value > 1 + 65 * 40 or string.byte(value) ~= 76 then return end
    if dry then
      booked[c.key] = true
    else
      if redis.acl_check_cmd and not redis.acl_check_cmd('RPUSH', c.key, value) then call('RPUSH', c.key, value) end
      call('LTRIM', c.key, 0, -2)
      c.taken = value
    end
  elseif not value then
    return
  elseif type(value) ~= 'string' or #value % 40 ~= 36 or #value > 36 + 65 * 40 then
    c.damaged = true
    return
  else
    c.x, c.y, c.z, c.born, c.lives = unpack_struct('>i8i8i8i8I4', value)
    if c.born > now then c.born = now end
    c.size = #value
  end
  if #value < at then return end
  local one, two, first, last, lent = unpack_struct('>i8i8i8i8i8', value, at)
  if one ~= 0 or two ~= 0 or first < 0 or last < first or last >= 9007199254740992 or lent < 0 or lent > 64 * 1000000000000 then
    return damaged(c)
  end
  c.first, c.last, c.lent, c.book, c.loans = first, last, lent, sub(value, at + 40), (#value - at - 39) / 40
end
local function loan(c, at)
  local number, spent, held, ends = unpack_struct('>i8i8i8i8', c.book, at + 8)
  if number < 0 or number >= 9007199254740992 or spent < 0 or spent >= 9007199254740992 or held < 0 or held > 1000000000000 or
    ends < 0 or ends >= 9007199254740992 then
    return damaged(c)
  end
  return number, spent, held, ends
end
local function replace(c, at, text)
  c.book, c.whole = sub(c.book, 1, at - 1) .. text .. sub(c.book, at + 40), true
end
local function expire(c)
  while c.loans > 0 and (c.first <= now or c.last > now + 60000000) do
    local over, most, first, last, lent = nil, nil, 9007199254740992 - 1, 0, 0
    for at = 1, #c.book, 40 do
      local number, _, held, ends = loan(c, at)
      if not number then return end
      if ends > now + 60000000 then
        ends = now + 60000000
        replace(c, at, sub(c.book, at, at + 31) .. pack('>i8', ends))
      end
      if ends < first then over, most, first = at, held, ends end
      if ends > last then last = ends end
      lent = lent + held
    end
    c.first, c.last, c.lent, c.changed = first, last, lent, true
    if first <= now then
      charge(c, (first > 1 and first or 1) - 1, most)
      replace(c, over, '')
      c.loans, c.lent = c.loans - 1, lent - most
    end
  end
end
local function place(c)
  local at = find(c.book, c.id, 1, true)
  while at and at % 40 ~= 1 do at = find(c.book, c.id, at + 1, true) end
  return at
end
local function report(c)
  expire(c)
  if c.number > 0 then
    local at = place(c)
    local number, spent, held, ends
    if at then number, spent, held, ends = loan(c, at) end
    if number then
      if number >= c.number then
        c.number = 0
      else
        charge(c, now, c.spent - spent)
        if c.live > 0 and c.lease < ends - now then c.lease = ends - now end
        if c.live > 0 and c.brief > 0 and c.brief < ends - now then c.brief = ends - now end
        c.place, c.loans, c.lent, c.changed = at, c.loans - 1, c.lent - held, true
      end
    elseif c.loans >= 64 then
      charge(c, now, c.live)
      c.number = 0
    end
  end
  if c.number == 0 then c.live, c.want, c.borrows = 0, 0, false end
end
local function own(c)
  local at = c.number == 0 and c.loans > 0 and c.id ~= NOBODY and place(c)
  local number, _, held
  if at then number, _, held = loan(c, at) end
  return number and decide(c, c.cost, c.counts - held)
end
local function lend(c, pass)
  local lenders = c.loans + 1
  c.others = c.lent
  local need = c.live
  if c.borrows and pass then need = need + c.cost end
  local parts = 2 * lenders
  if c.scarce then parts = lenders > 2 and lenders or 2 end
  local held = floor((c.remaining + need) / parts)
  if held > c.want then held = c.want end
  local lease = c.lease
  if c.brief > 0 and c.brief < lease then
    local part = floor((c.remaining + need) / (16 * lenders))
    if part < 2 or lenders > 32 then lease = c.brief elseif held > part then held = part end
  end
  if held < 2 or not c.allowed then held = 0 end
  if held < need then held = need end
  if held == 0 then
    if c.place then replace(c, c.place, '') end
    return
  end
  local ends = now + lease
  if lenders == 1 then c.first, c.last = ends, ends end
  if ends < c.first then c.first = ends end
  if ends > c.last then c.last = ends end
  c.held, c.length = held, lease
  c.remaining = c.remaining - (held - need)
  c.place, c.loan = c.place or #c.book + 1, pack('>c8i8i8i8i8', c.id, c.number, c.spent, held, ends)
  c.loans, c.lent, c.changed = lenders, c.lent + held, true
end
local function pause(c)
  local enough = floor(c.quota / 128) * (c.loans + 1)
  if enough > c.want then enough = c.want end
  if enough < c.cost then enough = c.cost end
  local allowed, _, _, retry = decide(c, enough, c.lent)
  return allowed and 0 or retry
end
local ban_left, ban_refused
local function text(key)
  local value = redis.pcall('GET', key)
  if type(value) ~= 'table' then return value end
  wrongtype(value, 'GET', key)
end
local function overrule(c)
  local values, j, index, damaged = { c.setting and text(c.setting) }, 1, c.index
  if values[1] then
    local valid, kind, till, more = pcall(unpack_struct, '>Bi8', values[1])
    if not valid then
      damaged = true
    elseif till == 0 or till > now then
      if kind == 1 then
        c.exempt = true
      elseif kind == 2 then
        c.left = till == 0 and -1 or till - now
      else
        local name, p1, p2, p3, p4, p5, p6 = c.name, c.p1, c.p2, c.p3, c.p4, c.p5, c.p6
        local override, marks, place, wrote
        local algorithm, whole, q1, q2, q3, q4, q5, q6, behind
        valid, algorithm, whole, q1, q2, q3, q4, q5, q6, behind = pcall(unpack_struct, '>sBi8i8i8i8i8i8', values[j], more)
        if not valid then
          damaged = true
        elseif algorithm == name then
          marks, place, p1 = 32, nil, q1
          override = string.sub(values[j], more + #algorithm + 1, behind - 1)
          if whole == 1 then
            local family = string.match(values[j], '^([^{%z]*)%z', behind) or
              (p2 == q2 and p3 == q3 and p4 == q4 and p5 == q5 and p6 == q6 and '' or 'own')
            p2, p3, p4, p5, p6 = q2, q3, q4, q5, q6
            override = override .. family
            local here = KEYS[index]
            if family ~= '' and here ~= string.match(here, '.*:') .. family .. '-lent' then -- a zone that lends counts there
              local other, l = string.match(here, '.*:') .. family, 1
              while KEYS[l] and KEYS[l] ~= other do l = l + 1 end
              if not KEYS[l] then
                local found = redis.pcall('GET', other)
                if type(found) == 'table' then
                  if not wrote and string.find(found.err, 'ttempted') then return redis.error_reply('TRYAGAIN ' .. found.err) end
                  wrongtype(found, 'GET', other)
                end
                values[l] = found
              end
              KEYS[l], index = other, l
            end
          end
        end
        if override then
          c.override, c.p1, c.p2, c.p3, c.p4, c.p5, c.p6 = override, p1, p2, p3, p4, p5, p6
          c.other = index ~= c.index and KEYS[index]
        end
      end
    end
  end
  if c.ban then
    if not ban_left then
      local function open(now, first, within, longest, till, since, count)
        if till < 0 or till >= 9007199254740992 or since < 0 or since >= 9007199254740992 or count < 0 or count >= 9007199254740992 then
          return 0, now, 0, 0
        end
        local level = count % 64
        count = (count - level) / 64
        if till > now then
          for _ = 1, level do first = first * 2 < longest and first * 2 or longest end
          if till > now + first then till, level = 0, 0 end
        end
        if since > now or now - since >= within then since, count = now, 0 end
        if till + longest <= now then level = 0 end
        return till, since, count, level
      end
      ban_left = function(now, first, within, longest, till, since, count)
        till = open(now, first, within, longest, till, since, count)
        return till > now and till - now or nil
      end
      ban_refused = function(now, first, after, within, longest, till, since, count)
        local level, left, life
        till, since, count, level = open(now, first, within, longest, till, since, count)
        count = count + 1
        if count >= after then
          left = first
          for _ = 1, level do left = left * 2 < longest and left * 2 or longest end
          if left < longest then level = level + 1 end
          till, count = now + left, 0
          life = left
        else
          life = since + within - now
        end
        if level > 0 and life < till + longest - now then life = till + longest - now end
        return left, till, since, count * 64 + level, life
      end
    end
    local value = text(c.ban)
    if value and #value == 24 then
      c.till, c.since, c.count = unpack_struct('>i8i8i8', value)
      c.known = true
    elseif value then
      damaged = true
    end
    c.left = c.left or ban_left(now, c.first_ban, c.within, c.longest, c.till, c.since, c.count)
  end
  c.damaged = c.damaged or damaged or false
  if c.exempt or c.left or c.override then c.want, c.borrows = 0, false end
end
local function elsewhere(c)
  local d = {}
  for field, value in pairs(c) do d[field] = value end
  d.key, d.here, d.x, d.y, d.z, d.born, d.lives, d.size = c.other, c, 0, 0, 0, now, 0, 0
  d.book, d.loans, d.lent, d.live, d.number, d.place, d.loan = '', 0, 0, 0, 0, false, false
  d.taken, d.changed, d.whole, d.owed, d.entries = false, false, false, 0, 0
  open(d)
  expire(d)
  c.allowed, c.remaining = false, 0
  return d
end
local function banned(c)
  if c.allowed then
    local _
    _, c.quota, c.remaining, c.retry, c.next, c.reset = decide(c, 0, c.counts)
  end
  if c.left == -1 then
    c.retry, c.next = -1, 0
  else
    if c.retry ~= -1 and c.retry < c.left then c.retry = c.left end
    if c.remaining > 0 or c.next < c.left then c.next = c.left end
    if c.reset < c.next then c.reset = c.next end
  end
  c.allowed, c.remaining = false, 0
end
local function count(c)
  c.left, c.till, c.since, c.count, c.life = ban_refused(now, c.first_ban, c.after, c.within, c.longest, c.till, c.since, c.count)
  c.begins = c.left
end
local function remember(c)
  if unlock then unlock(c.ban) end
  call('SET', c.ban, pack('>i8i8i8', c.till, c.since, c.count), 'PX', floor(c.life / 1000) + 1000--[[MARGIN_MS]])
end
local function write(c)
  local latest, about = now, ''
  if c.loans > 0 then
    if c.last > now then latest = c.last end
    about = pack('>i8i8i8i8i8', 0, 0, c.first, c.last, c.lent)
  else
    c.whole = true
  end
  if c.record then
    local _, _, _, _, _, reset = c.take(latest, c.lent, 9007199254740992, c.p2, c.p3, c.p4, c.p5, c.p6, c.key)
    if c.loan then replace(c, c.place, c.loan) end
    c.taken = nil
    if c.loans > 0 then
      if call('LLEN', c.key) == 0 then call('RPUSH', c.key, '0') end -- it must not become empty when the book is taken
      call('RPUSH', c.key, 'L' .. about .. c.book)
    end
    call('PEXPIRE', c.key, floor((latest - now + reset) / 1000) + 1000--[[MARGIN_MS]])
    return
  end
  unlocked(c)
  local _, _, _, till = charged(c.name, latest, c.lent, c.p2, c.p3, c.p4, c.p5, c.p6, c.x, c.y, c.z)
  local need = (till > latest and till or latest) / 1000000 + 1--[[MARGIN]]
  if c.lives >= need and not c.whole then
    call('SETRANGE', c.key, '0', pack('>i8i8i8i8I4', c.x, c.y, c.z, c.born, c.lives) .. about)
    if c.loan then call('SETRANGE', c.key, 75 + c.place, c.loan) end
    return
  end
  if c.loan then replace(c, c.place, c.loan) end
  local seconds = floor(now / 1000000)
  local life = floor(need) + 1 - seconds
  life = life + (life < 172800 and floor(life / 2) or 86400) + 16
  local lives = seconds + life < 4294967296 and seconds + life or 0
  call('SET', c.key, pack('>i8i8i8i8I4', c.x, c.y, c.z, c.born, lives) .. about .. c.book, 'EX', life)
end
local function grows(c)
  local room = #c.book
  if c.loan and c.place > room then room = room + 40 end
  if c.record then return room > #c.book or c.entries > 0 and c.entries > expired(c, now) end
  return c.changed and 36 + (c.loans > 0 and 40 + room or 0) > c.size
end
local function decided(checks, pass)
  local replies = {}
  for i = 1, #checks do
    local c = checks[i]
    if c.op ~= 1 then
      if c.exempt then
        c.allowed = true
      elseif pass and c.op == 0 then
        if c.borrows then -- it is lent
        elseif c.s1 and c.cost > 0 then
          c.x, c.y, c.z, c.changed = c.s1, c.s2, c.s3, true
        else
          charge(c, now, c.cost)
        end
      elseif c.allowed then
        c.allowed, c.quota, c.remaining, c.retry, c.next, c.reset = decide(c, 0, c.counts)
      end
      if c.op == 0 then
        local here = c.here or c
        lend(here, pass)
        c.held, c.length, c.others = here.held, here.length, here.others
        if c.held == 0 and c.want > 0 then c.pause = pause(c) end
      end
    end
    if not dry then
      if c.here and (c.here.changed or c.here.taken) then write(c.here) end
      if c.changed or c.taken then write(c) end
      if c.life then remember(c) end
    end
    local flags = (c.allowed and 1 or 0) + (c.damaged and 2 or 0) + (c.own and 128 or 0)
    if c.setting or c.ban then
      flags = flags + (c.exempt and 4 or c.left and 8 or 0) + (c.begins and 16 or 0) + (c.override and 32 or 0)
    end
    replies[i] = pack('>Bi8i8i8i8i8i8i8i8i8i8i8', flags, c.quota, c.remaining,
      c.retry, c.next, c.reset, c.held, c.length, c.others, c.pause, c.lent, c.loans)
    if c.override then replies[i] = replies[i] .. pack('>Hc0', #c.override, c.override) end
  end
  return table.concat(replies)
end
local function group(checks)
  local pass = true
  for i = 1, #checks do
    local c = checks[i]
    open(c)
    if c.op == 1 then
      expire(c)
      local made, turn, delta = c.number, c.spent, c.live
      if c.record then
        if dry then
          c.done, c.entries = true, delta > 0 and 9007199254740992 or c.entries -- a late cost needs memory
        else
          c.done = c.adjust(c.key, now, made, -1, delta, c.p1, c.p2, c.p3, c.p4, c.p5, c.p6)
        end
      else
        local x, y, z = c.adjust(now, made, turn, delta, c.p1, c.p2, c.p3, c.p4, c.p5, c.p6, c.x, c.y, c.z)
        if x then c.done, c.x, c.y, c.z = true, x, y, z end
      end
      if not c.done and not unable then nothing(call, c.key) end -- see adjust.lua
      c.changed = c.changed or c.done
      c.allowed, c.quota, c.remaining, c.retry, c.next, c.reset = true, c.done and 1 or 0, 0, 0, 0, 0
      if c.done and delta > 0 then
        local _, _, remaining = decide(c, 0, c.lent)
        if remaining > 0 then c.remaining = 1 end
      end
    else
      if c.op == 0 then report(c) else expire(c) c.live = 0 end
      if unable then -- nothing more is lent
        c.want = 0
        c.borrows = c.borrows and c.place
      end
      if c.setting or c.ban then
        local again = overrule(c)
        if again then error(again) end
        if c.other then
          c = elsewhere(c)
          checks[i] = c
        end
      end
      if not c.exempt then
        c.counts = c.lent + c.live
        c.allowed, c.quota, c.remaining, c.retry, c.next, c.reset, c.s1, c.s2, c.s3 = decide(c, c.cost, c.counts)
        c.own = c.op == 0 and not c.allowed and not c.left and not c.override and own(c)
        if c.ban and c.op == 0 and not c.left and not c.allowed and (c.final or not c.own) and not dry and not (unable and not c.known) then count(c) end
        if c.left then banned(c) end
        pass = pass and c.allowed
      end
    end
  end
  return decided(checks, pass), pass
end
local function tried(checks)
  local reply, pass = group(checks)
  local charges, writes = false, full
  for i = 1, #checks do
    local c = checks[i]
    charges = charges or c.op == 1 or pass and c.op == 0 and c.cost > 0
    writes = writes and not grows(c) and not (c.here and grows(c.here))
  end
  if not writes then return charges and '\3' or '\2' .. reply end
end
local function failed(checks, why)
  for i = 1, #checks do
    local c = checks[i]
    for _, c in ipairs(c.here and { c, c.here } or { c }) do
      if c.taken and redis.pcall('RPUSH', c.key, c.taken) == 1 then
        redis.pcall('PEXPIRE', c.key, floor((c.p2 + 60000000) / 1000))
      end
    end
  end
  local text = type(why) == 'table' and why.err or tostring(why)
  text = string.match(text, '^@user_script: %d+: %-(.*)') or text -- Redis 6
  local word = string.match(text, '^%u+ ')
  if #ARGV[1] == checks.length or word and find(' READONLY OOM MISCONF NOREPLICAS ', ' ' .. word, 1, true) then
    return redis.error_reply((word and '' or 'ERR ') .. text .. ' script: lend.lua')
  end
  return pack('>BHc0', 1, #text, text)
end
local reply, groups, ports = { pack('>i8', now) }, ARGV[1], {}
if careful then reply[1] = reply[1] .. pack('>H', unable and #unable or 0) .. (unable or '') end
local function read(at, k)
  local checks, first = {}, at
  local n = string.byte(groups, at)
  at = at + 1
  for j = 1, n do
    k = k + 1
    local c = {
      key = KEYS[k], name = false, take = false, record = false, adjust = false, p1 = 0, p2 = 0, p3 = 0, p4 = 0, p5 = 0, p6 = 0,
      op = 0, cost = 0, id = false, number = 0, spent = 0, live = 0, want = 0, lease = 0, brief = 0, scarce = false, borrows = false,
      x = 0, y = 0, z = 0, born = now, lives = 0, s1 = false, s2 = false, s3 = false, book = '', loans = 0, lent = 0, first = 0, last = 0, counts = 0,
      place = false, loan = false, whole = false, size = 0, owed = 0, entries = 0,
      taken = false, changed = false, damaged = false, done = false, index = k, setting = false, ban = false, final = false, own = false,
      allowed = false, quota = 0, remaining = 0, retry = 0, next = 0, reset = 0, held = 0, length = 0, others = 0, pause = 0,
    }
    c.op, c.cost, c.id, c.number, c.spent, c.live, c.want, c.lease, c.brief, at = unpack_struct('>Bi8c8i8i8i8i8i8i8', groups, at)
    if c.op >= 64 then c.op, c.final = c.op - 64, true end
    local bans = c.op >= 32
    if bans then c.op, c.till, c.since, c.count = c.op - 32, 0, 0, 0 end
    at, c.name, c.p1, c.p2, c.p3, c.p4, c.p5, c.p6, c.first_ban, c.after, c.within, c.longest =
      cmsgpack.unpack_limit(groups, bans and 11 or 7, at - 1)
    at = at < 0 and #groups + 1 or at + 1
    if c.op >= 16 then
      k = k + 1
      c.op, c.setting = c.op - 16, KEYS[k]
    end
    if bans then
      k = k + 1
      c.ban = KEYS[k]
    end
    checks[j] = c
    local name = c.name
    if c.op >= 8 then c.op, c.borrows = c.op - 8, true end
    if c.op >= 4 then c.op, c.scarce = c.op - 4, true end
    local made = c.op ~= 1 and not dry and ports[name] or { port(name, c.op == 1 and 2 or 0) }
    if c.op ~= 1 and not dry then ports[name] = made end
    c.take, c.record, c.adjust = made[1], made[2], made[3]
  end
  checks.length = at - first
  return checks, k, at
end
local at, k = 1, 0
while at <= #groups do
  local checks, keys, behind, done, text
  if unable then
    dry, booked = true, {}
    checks, keys, behind = read(at, k)
    done, text = pcall(tried, checks)
    if not done then text = failed(checks, text) end
    dry, booked = false, {}
  end
  if not text then
    checks, keys, behind = read(at, k)
    done, text = pcall(group, checks)
    text = done and '\0' .. text or failed(checks, text)
  end
  if type(text) == 'table' then return text end -- an error of the call
  reply[#reply + 1], at, k = text, behind, keys
end
return table.concat(reply)
