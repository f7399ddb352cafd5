-- The part of take.lua for calls that only Counters decide, without key rules and each key once.
-- Most calls are such calls, so they must cost Redis little: the ports are inlined, and compute
-- only what is charged.
--
-- ARGV[1]  for one check of one request, the byte 3, the cost, and the rule: the algorithm's
--          name, a zero byte, six parameters. Otherwise the byte 2, or 6 for a careful call, and
--          sections: groups that ask the same of different keys. A section is
--   a byte         the number of checks in each group
--   two bytes      the number of groups
--   a byte         1 if several requests share some of the groups
--   for each check, the cost and the rule
--   for each group, if some are shared, a byte: the number of requests that ask it
-- KEYS     the keys of the groups, in their order.
--
-- The reply is one string: the time, how many of all requests passed (two bytes), the state
-- before of each key as it is stored, and the numbers of the keys whose state was damaged (two
-- bytes each). The Go algorithms compute each request's decision from these. Where there are
-- several keys, one that is not a string is replaced like one that does not exist. To the number of
-- a key of which parts are lent, 32768 is added: see lend.lua. Its group is not decided.
if mode == 3 then
  local key = KEYS[1]
  local value, damaged, cost, name, p1, p2, p3, p4, p5, p6 = redis.pcall('GET', key), '', unpack_struct('>i8si8i8i8i8i8i8', groups, 2)
  local s1, s2, s3, lives, ok, room, till, x, y, z, span, text = 0, 0, 0, 0
  if value and #value == 28 then
    s1, s2, s3, lives = unpack_struct('>i8i8i8I4', value)
  else
    if value then
      if #value % 40 == 28 then return pack('>i8Hc28H', now, 0, value, 32769) end
      damaged = '\0\1'
    end
    value = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
  end
  --[[charge]]
  if ok and cost > 0 then
    --[[write]]
  end
  return pack('>i8Hc0c0', now, ok and 1 or 0, value, damaged)
elseif mode == 2 then
  local values = KEYS[2] and call('MGET', unpack(KEYS)) or { redis.pcall('GET', KEYS[1]) }
  local at, k, group, passed, damaged, span, text = 2, 0, 0, 0, ''
  while at <= #groups do
    local n, m, shared, each, name, p1, p2, p3, p4, p5, p6
    n, m, shared, each, name, p1, p2, p3, p4, p5, p6, at = unpack_struct('>BHBi8si8i8i8i8i8i8', groups, at)
    local rules, after
    if n > 1 then
      rules, after = { { each, name, p1, p2, p3, p4, p5, p6 } }, {}
      for i = 2, n do
        rules[i] = { unpack_struct('>i8si8i8i8i8i8i8', groups, at) }
        at = rules[i][9]
      end
    end
    for j = 1, m do
      group = group + 1
      -- If not all requests fit, the group is decided once more, for as many as fit.
      local times = shared > 0 and byte(groups, at + j - 1) or 1
      while times > 0 do
        local fit, stuck, ok, room, till, x, y, z, lives = times
        for i = 1, n do
          if rules then each, name, p1, p2, p3, p4, p5, p6 = unpack(rules[i]) end
          local value, s1, s2, s3 = values[k + i], 0, 0, 0
          if value and #value == 28 then
            s1, s2, s3, lives = unpack_struct('>i8i8i8I4', value)
          else
            if value then
              local lent = #value % 40 == 28
              damaged = damaged .. pack('>H', (lent and 32768 or 0) + k + i)
              if lent then fit = 0 end
            end
            values[k + i], lives = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0', 0
          end
          local cost = each * times
          --[[charge]]
          if not ok then
            local fits = times > 1 and floor(room / each) or 0
            if fits < fit then fit = fits end
          elseif after then
            after[i] = { x, y, z, till, lives, cost }
          end
          if unable and cost > 0 and (not full or lives == 0) then stuck = true end
        end
        if stuck and fit > 0 then
          uncharged = uncharged .. pack('>H', group)
          break
        end
        if fit == times then
          for i = 1, n do
            local key, charged = KEYS[k + i], each
            if after then x, y, z, till, lives, charged = unpack(after[i]) end
            if charged > 0 then
              --[[write]]
            end
          end
          passed = passed + times
          break
        end
        times = fit
      end
      k = k + n
    end
    if shared > 0 then at = at + m end
  end
  local reply = pack('>i8Hc0c0', now, passed, k > 1 and table.concat(values, '', 1, k) or values[1], damaged)
  if careful then return uncharged .. pack('>HH', 0, unable and #unable or 0) .. (unable or '') .. reply end
  return reply
end
