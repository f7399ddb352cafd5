-- Made of lua/take.lua by "make scripts". Do not edit.
if not ARGV[2] or ARGV[2] == 'c' then
  local call, pack, unpack_struct, keys = redis.call, struct.pack, struct.unpack, KEYS
  local careful, unable, full, unlock, uncharged = ARGV[2]
  if careful then
    uncharged = ''
    local function wrongtype(reply, ...)
      if not string.find(reply.err, 'WRONGTYPE', 1, true) then call(...) end
    end
    local function nothing(try, key)
      local found = redis.pcall('GET', key)
      if type(found) == 'table' then wrongtype(found, 'GET', key) end
      return try('SET', key, '', found and 'NX' or 'XX')
    end
    local done = nothing(redis.pcall, KEYS[1])
    unable = type(done) == 'table' and done.err and string.sub(done.err, 1, 300)
    full = unable and string.find(unable, 'OOM command', 1, true)
    if full then
      unlock = function(key) call('PEXPIRE', key, 1000--[[MARGIN_MS]]) end -- it returns nil, because it is needed once
    end
  end
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local values = keys[2] and call('MGET', unpack(keys)) or { redis.pcall('GET', keys[1]) }
  local at, k, group, noticed, refused = 0, 0, 0, '', 0 -- at is -1 at the end
  local span, text
  repeat
    local rules, after, _
    local name, p1, p2, p3, p4, p5, p6, each, n, m, shared
    at, name, p1, p2, p3, p4, p5, p6, each, n, m, shared = cmsgpack.unpack_limit(ARGV[1], 11, at)
    n = n or 1
    if n > 1 then
      rules, after = { { 0, name, p1, p2, p3, p4, p5, p6, each } }, {}
      for i = 2, n do
        rules[i] = { cmsgpack.unpack_limit(ARGV[1], 8, at) }
        at = rules[i][1]
      end
    end
    for j = 1, m or #keys do
      group = group + 1
      local asked = shared and string.byte(shared, j) or 1
      local times = asked
      repeat
        local i, fit, stuck, ok, room, till, x, y, z, lives, cost, since = 1, times
        repeat
          if rules then _, name, p1, p2, p3, p4, p5, p6, each = unpack(rules[i]) end
          local value, s1, s2, s3 = values[k + i]
          if value and #value == 36 then
            s1, s2, s3, since, lives = unpack_struct('>i8i8i8i8I4', value)
            if since > now then since = now end
          else
            if value then
              if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then call('GET', keys[1]) end
              local lent = #value % 40 == 36
              noticed = noticed .. pack('>H', (lent and 32768 or 0) + k + i)
              if lent then fit = 0 end
            end
            values[k + i] = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
            s1, s2, s3, since, lives = 0, 0, 0, now, 0
          end
          cost = each * times
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
          if not ok then
            local fits = times > 1 and math.floor(room / each) or 0
            if fits < fit then fit = fits end
          elseif after then
            after[i] = { x, y, z, till, lives, cost, since }
          end
          if unable and cost > 0 and (not full or lives == 0) then stuck = true end
          i = i + 1
        until i > n
        if stuck and fit > 0 then
          uncharged = uncharged .. pack('>H', group)
          times = 0
        elseif fit == times then
          i = 1
          repeat
            if after then x, y, z, till, lives, cost, since = unpack(after[i]) end
            if cost > 0 then
              local key = keys[k + i]
              if unlock then
                unlock = unlock(key)
                lives = 0
              end
              local need = till / 1000000 + 1--[[MARGIN]]
              if lives >= need then
                call('SETRANGE', key, '0', pack('>i8i8i8i8', x, y, z, since))
              else
                local seconds = (now - now % 1000000) / 1000000
                local life = need - need % 1 + 1 - seconds
                if lives > 0 then
                  life = life + (life < 172800 and (life - life % 2) / 2 or 86400) + 16
                else
                  life = life + (life - life % 8) / 8 + 1
                  if life > 1024 then life = life + 128 - life % 128 elseif life > 64 then life = life + 8 - life % 8 end
                end
                if life ~= span then span, text = life, tostring(life) end
                call('SET', key, pack('>i8i8i8i8I4', x, y, z, since, seconds + life), 'EX', text)
              end
            end
            i = i + 1
          until i > n
          break
        else
          times = fit
        end
      until times == 0
      refused = refused + asked - times
      k = k + n
    end
  until at < 0
  local all = values
  local reply = (all[k] or '') .. noticed .. (refused > 0 and ' ' .. refused .. ' ' or ' 0 ') .. time[1] .. ' ' .. time[2]
  if k > 1 then -- making a long text twice would cost more
    all[k] = reply
    reply = table.concat(all, '', 1, k)
  end
  if careful then reply = uncharged .. pack('>HH', 0, unable and #unable or 0) .. (unable or '') .. reply end
  return reply
end
return (function()
  local call, floor, byte, pack, unpack_struct = redis.call, math.floor, string.byte, struct.pack, struct.unpack
  local read, groups, mode = cmsgpack.unpack_limit, ARGV[1], byte(ARGV[2])
  local function wrongtype(reply, ...)
    if not string.find(reply.err, 'WRONGTYPE', 1, true) then call(...) end
  end
  local function nothing(try, key)
    local found = redis.pcall('GET', key)
    if type(found) == 'table' then wrongtype(found, 'GET', key) end
    return try('SET', key, '', found and 'NX' or 'XX')
  end
  local careful, unable, full, unlock, uncharged = mode > 3
  if careful then
    mode, uncharged = mode - 4, ''
    local done = nothing(redis.pcall, KEYS[1])
    unable = type(done) == 'table' and done.err and string.sub(done.err, 1, 300)
    full = unable and string.find(unable, 'OOM command', 1, true)
    if full then
      unlock = function(key) call('PEXPIRE', key, 1000--[[MARGIN_MS]]) end -- it returns nil, because it is needed once
    end
  end
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local function port(name, op)
    local take, record, adjust, spares
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
    return take, record, adjust, spares
  end
  local values, states, before = nil, { false }, nil
  local all = { '' } -- the replies
  if #KEYS > 1 then
    all, states, before = { false, false, false, false }, { false, false, false, false }, { false, false, false, false }
    if mode == 1 then values = call('MGET', unpack(KEYS)) end
  end
  local place, p1, p2, p3, p4, p5, p6
  local name, take, record, adjust, spares, ports
  local ban_left, ban_refused
  local wrote -- whether anything was written before the end
  local at, group, k, noticed, refused = 0, 0, 0, '', 0 -- at is -1 at the end, and k how many checks were decided
  while at >= 0 and #groups > 0 do
    local n, copies, first
    first, n, copies = read(groups, 2, at)
    local times, fit, several = copies, copies, copies > 1
    local charges -- of Recorders and Leasers, in groups of several checks
    local stuck   -- whether a charge cannot be written
    local undecided, counted -- whether parts of a key are lent; the bans before a refusal was counted
    group = group + 1
    local pass
    for round = 1, 2 do
      pass, at = true, first
      for i = 1, n do
        local op, index, cost, lease_id, offset
        at, op, index, cost, lease_id, offset = read(groups, 5, at)
        local beside = op
        if op > 3 then op = op % 4 end
        if offset ~= place or op == 2 and not adjust then
          local wanted, behind
          place = offset >= 0 and offset or at
          behind, wanted, p1, p2, p3, p4, p5, p6 = read(groups, 7, place)
          if offset < 0 then at = behind end
          if wanted ~= name or op == 2 and not adjust then
            if name then
              ports = ports or {}
              ports[name] = { take, record, adjust, spares }
            end
            name = wanted
            local made = ports and ports[name]
            if made and (op ~= 2 or made[3]) then
              take, record, adjust, spares = made[1], made[2], made[3], made[4]
            else
              take, record, adjust, spares = port(name, op)
            end
          end
        end
        local exempt, left, marks, override, ban, first_ban, after, within, longest, damaged
        if beside > 3 then
          local j
          if beside % 8 > 3 then
            at, j = read(groups, 1, at)
            if values[j] then
              local valid, kind, till, more = pcall(unpack_struct, '>Bi8', values[j])
              if not valid then
                damaged = true
              elseif till == 0 or till > now then
                if kind == 1 then
                  exempt = true
                elseif kind == 2 then
                  left = till == 0 and -1 or till - now
                else
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
                end
              end
            end
          end
          if beside > 7 then
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
            at, j, first_ban, after, within, longest = read(groups, 5, at)
            ban = states[j]
            if not ban then
              ban = { x = 0, y = 0, z = 0, till = false, lives = false, new = true }
              states[j] = ban
              if values[j] and #values[j] == 24 then
                ban.x, ban.y, ban.z = unpack_struct('>i8i8i8', values[j])
                ban.new = false
              elseif values[j] then
                damaged = true
              end
            end
            left = left or ban_left(now, first_ban, within, longest, ban.x, ban.y, ban.z)
          end
        end
        local key, state, lent = KEYS[index], states[index]
        local s1, s2, s3 = key
        if not record then
          if round == 2 and n > 1 and before[index] then
            state.x, state.y, state.z, state.till = unpack(before[index])
          end
          if state then
            s1, s2, s3 = state.x, state.y, state.z
          else
            local value, since, lives = values and values[index] or redis.pcall('GET', key), now, 0
            s1, s2, s3 = 0, 0, 0
            if value and #value == 36 then
              s1, s2, s3, since, lives = unpack_struct('>i8i8i8i8I4', value)
              if since > now then since = now end
            elseif value then
              if type(value) == 'table' then wrongtype(value, 'GET', key) end
              lent = #value % 40 == 36
              damaged = not lent
            end
            if not lent then
              state = { x = s1, y = s2, z = s3, till = false, since = since, lives = lives, new = lives == 0 }
              states[index] = state
            end
          end
        end
        local allowed, quota, remaining, retry, next, reset, delay = true, 0, 0, 0, 0, 0, 0
        local write, x, y, z -- whether the state x, y, z is to be written, or lives on
        if op == 2 then
          local made, turn, delta, from = unpack_struct('>i8i8i8', lease_id)
          local over = delta < 0 and state and made < state.since or delta > 0 and turn > 0 and now >= turn
          if not adjust then
            write = nil -- the algorithm cannot change charges
          elseif record then
            x = key
            stuck = not over and unable and (not full or delta > 0)
            write = not over and not stuck and adjust(key, now, made, turn, delta, p1, p2, p3, p4, p5, p6, string.sub(lease_id, from))
          else
            if not lent and not over then x, y, z = adjust(now, made, turn, delta, p1, p2, p3, p4, p5, p6, s1, s2, s3) end
            stuck = unable and (not full or lent or x and state.new)
            write = x and not stuck
          end
          if adjust and not write and not unable then nothing(call, key) end
          quota = write and 1 or 0
          if write then
            local _
            _, _, _, _, _, reset = take(now, 0, record and 9007199254740992 or p1, p2, p3, p4, p5, p6, x, y, z)
          end
        elseif op == 1 then
          allowed, quota, remaining, retry, next, reset, delay, x, y, z, damaged = take(now, 0, 9007199254740992, p2, p3, p4, p5, p6, key)
          if reset < y then reset = y end
          stuck = unable and not full -- a lease that exists needs no more memory
          if not stuck then
            if unlock then unlock = unlock(key) end
            record(key, cost, x, y, z, lease_id)
            write = true
          end
        elseif exempt then
          marks = 4
          if n > 1 and not record then before[index] = false end
          if times == 0 then quota = nil end
        else
          local broken, _
          allowed, quota, remaining, retry, next, reset, delay, x, y, z, broken =
            take(now, cost * (times > 0 and times or 1), p1, p2, p3, p4, p5, p6, s1, s2, s3)
          if broken and record then
            local newest = redis.pcall('LINDEX', key, -1)
            if type(newest) == 'table' then wrongtype(newest, 'LINDEX', key, -1) end
            lent = type(newest) == 'string' and #newest % 40 == 1 and byte(newest) == 76
          end
          damaged = damaged or broken and not lent
          if lent then
            allowed, remaining, retry, undecided = false, 0, -1, true
            if not left then marks = (marks or 0) + 64 end
          end
          stuck = stuck or unable and cost > 0 and op == 0 and
            (not full or state and state.new or record and not (spares and spares(x, y, z)))
          if ban and op == 0 and not left and not allowed and not lent and round == 1 and not (unable and (not full or ban.new)) then
            local life
            if n > 1 then
              counted = counted or {}
              counted[#counted + 1] = { ban, ban.x, ban.y, ban.z, ban.till }
            end
            left, ban.x, ban.y, ban.z, life = ban_refused(now, first_ban, after, within, longest, ban.x, ban.y, ban.z)
            ban.till = now + life
            if left then marks = (marks or 0) + 16 end
          end
          if left then
            if allowed then _, quota, remaining, retry, next, reset = take(now, 0, p1, p2, p3, p4, p5, p6, s1, s2, s3) end
            if left == -1 then
              retry, next = -1, 0
            else
              if retry ~= -1 and retry < left then retry = left end
              if remaining > 0 or next < left then next = left end
              if reset < next then reset = next end
            end
            allowed, remaining, delay, marks = false, 0, 0, (marks or 0) + 8
          end
          local undo = false -- the state before the charge, for round 2
          if not allowed then
            pass = false
            local fits = several and floor(remaining / cost) or 0
            if fits < fit then fit = fits end
            if times == 0 then quota = nil end -- it keeps the reply of the first round
          elseif times == 0 or op == 3 then
            undo = nil
            local held = op == 3 and delay or 0
            allowed, quota, remaining, retry, next, reset = take(now, 0, p1, p2, p3, p4, p5, p6, s1, s2, s3)
            delay = held
          elseif cost > 0 and not stuck then
            if not record then
              write, undo = true, n > 1 and { s1, s2, s3, state.till }
            elseif n > 1 then
              charges = charges or {}
              charges[#charges + 1] = { record, key, cost, x, y, z, lease_id, reset }
            else
              write = true
              if unlock then unlock = unlock(key) end
              record(key, cost, x, y, z, lease_id)
            end
          end
          if n > 1 and not record and undo ~= nil then before[index] = undo end
        end
        if write and record then
          call('PEXPIRE', key, floor(reset / 1000) + 1000--[[MARGIN_MS]])
          wrote = true
        elseif write then
          state.x, state.y, state.z, state.till = x, y, z, now + reset
        end
        if not quota then -- the reply of the first round holds
        elseif not several then
          local reply = pack('>Bi8i8i8i8i8i8', (allowed and 1 or 0) + (damaged and 2 or 0) + (marks or 0),
            quota, remaining, retry, next, reset, delay)
          all[k + i] = override and reply .. pack('>Hc0', #override, override) or reply
        elseif round == 1 then
          all[k + i] = pack('>i8i8i8i8I4', s1, s2, s3, 0, 0)
          if damaged or lent then noticed = noticed .. pack('>H', (lent and 32768 or 0) + k + i) end
        end
      end
      if stuck and fit > 0 then
        uncharged = uncharged .. pack('>H', group)
        pass, fit = false, 0
      end
      if pass or n == 1 and not several then break end
      charges = nil
      times = round == 1 and fit or 0
      if times == 0 and several and n == 1 then break end
    end
    if undecided and counted then -- lend.lua will count them
      for j = #counted, 1, -1 do
        local was = counted[j]
        was[1].x, was[1].y, was[1].z, was[1].till = unpack(was, 2, 5)
      end
    end
    if several then refused = refused + copies - times end
    k = k + n
    if charges and times > 0 then
      wrote = true
      for _, c in ipairs(charges) do
        if unlock then unlock = unlock(c[2]) end
        c[1](c[2], c[3], c[4], c[5], c[6], c[7])
        call('PEXPIRE', c[2], floor(c[8] / 1000) + 1000--[[MARGIN_MS]])
      end
    end
  end
  local span, text
  for i = 1, #KEYS do
    local state = states[i]
    if state and state.till then
      local key, x, y, z, since, till, lives = KEYS[i], state.x, state.y, state.z, state.since, state.till, state.lives
      if unlock then
        unlock = unlock(key)
        lives = lives and 0
      end
      if lives then
        local need = till / 1000000 + 1--[[MARGIN]]
        if lives >= need then
          call('SETRANGE', key, '0', pack('>i8i8i8i8', x, y, z, since))
        else
          local seconds = (now - now % 1000000) / 1000000
          local life = need - need % 1 + 1 - seconds
          if lives > 0 then
            life = life + (life < 172800 and (life - life % 2) / 2 or 86400) + 16
          else
            life = life + (life - life % 8) / 8 + 1
            if life > 1024 then life = life + 128 - life % 128 elseif life > 64 then life = life + 8 - life % 8 end
          end
          if life ~= span then span, text = life, tostring(life) end
          call('SET', key, pack('>i8i8i8i8I4', x, y, z, since, seconds + life), 'EX', text)
        end
      else
        call('SET', key, pack('>i8i8i8', x, y, z), 'EX', floor((till - now) / 1000000) + 2--[[MARGIN_S]])
      end
    end
  end
  local reply = (all[k] or '') .. noticed .. (refused > 0 and ' ' .. refused .. ' ' or ' 0 ') .. time[1] .. ' ' .. time[2]
  if k > 1 then -- making a long text twice would cost more
    all[k] = reply
    reply = table.concat(all, '', 1, k)
  end
  if careful then reply = uncharged .. pack('>HH', 0, unable and #unable or 0) .. (unable or '') .. reply end
  return reply
end)()
