-- The part of take.lua for calls that only Counters decide, without key rules and each key once.
--
-- ARGV[1]  sections: groups that ask the same of different keys. A section is
--   the rule and the cost of the first check of a group
--   the number of checks in each group
--   the number of groups
--   a text: empty, or for each group a byte, which is the number of requests that ask it
--   for each other check of a group, the rule and the cost
-- KEYS     the keys of the groups, in their order
--
-- Most calls have one section, with one check in each group and one request for each. Then the text
-- ends after the cost, there is no ARGV[2], and plain.lua decides.
--
-- The reply is that of take.lua for groups that several requests ask, whether they do or not: the
-- states before. Where there are several keys, one that is not a string is replaced like one that
-- does not exist.
if mode == 2 then
  local keys = KEYS
  local values = keys[2] and call('MGET', unpack(keys)) or { redis.pcall('GET', keys[1]) }
  local at, k, group, span, text = 0, 0, 0
  while at >= 0 do
    local n, m, shared, name, p1, p2, p3, p4, p5, p6, each, _
    at, name, p1, p2, p3, p4, p5, p6, each, n, m, shared = read(groups, 11, at)
    local rules, after
    if n > 1 then
      rules, after = { { 0, name, p1, p2, p3, p4, p5, p6, each } }, {}
      for i = 2, n do
        rules[i] = { read(groups, 8, at) }
        at = rules[i][1]
      end
    end
    for j = 1, m do
      group = group + 1
      -- If not all requests fit, the group is decided once more, for as many as fit.
      local asked = byte(shared, j) or 1
      local times = asked
      while times > 0 do
        local fit, stuck, ok, room, till, x, y, z, lives = times
        for i = 1, n do
          if rules then _, name, p1, p2, p3, p4, p5, p6, each = unpack(rules[i]) end
          local value, s1, s2, s3 = values[k + i], 0, 0, 0
          if value and #value == 28 then
            s1, s2, s3, lives = unpack_struct('>i8i8i8I4', value)
          else
            if value then
              if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then call('GET', keys[1]) end
              local lent = #value % 40 == 28
              noticed = noticed .. pack('>H', (lent and 32768 or 0) + k + i)
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
          times = 0
          break
        end
        if fit == times then
          for i = 1, n do
            local key, charged = keys[k + i], each
            if after then x, y, z, till, lives, charged = unpack(after[i]) end
            if charged > 0 then
              if unlock then
                unlock = unlock(key)
                lives = 0
              end
              --[[write]]
            end
          end
          break
        end
        times = fit
      end
      refused = refused + asked - times
      k = k + n
    end
  end
  last, all, n = values[k], k > 1 and values, k
end
