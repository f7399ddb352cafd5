-- What take.lua does with a call of several keys if it is a plain one: all checks are to be
-- decided by Counters, no key stands in it twice, and nothing stands above a limit. Most
-- calls that requests share are such, and what they cost each is Redis's.
--
-- ARGV[1]  the byte 2, and sections: groups that ask the same of different keys. A section
--          is a byte that says how many checks a group of it has, how many groups there are
--          (two bytes), and a byte (1: some are shared); for each check the place of its rule
--          in ARGV[1] (two bytes; 0: it follows), the cost, and the rule if it follows; and if
--          some are shared, for each group a byte that says how many requests ask it.
-- KEYS     those of the groups, in their order.
--
-- The reply is one string: the time, for how many of all requests there was room (two
-- bytes), for each key the state before, and the numbers of those keys whose state was
-- damaged (two bytes each). From these the twins in Go know what each request is told.
if mode == 2 then
  local values, none = call('MGET', unpack(KEYS)), pack('>i8i8i8', 0, 0, 0)
  local rules, section, costs, after = {}, {}, {}, {}
  local at, k, passed, damaged, group = 2, 0, 0, '', 0
  while at <= #groups do
    local n, m, shared
    n, m, shared, at = unpack_struct('>BHB', groups, at)
    for i = 1, n do
      local place, cost
      place, cost, at = unpack_struct('>Hi8', groups, at)
      local rule = rules[place]
      if not rule then
        place = at
        local name, p1, p2, p3, p4, p5, p6
        name, p1, p2, p3, p4, p5, p6, at = unpack_struct('>si8i8i8i8i8i8', groups, at)
        rule = { twin(name, 0), p1, p2, p3, p4, p5, p6 }
        rules[place] = rule
      end
      section[i], costs[i] = rule, cost
    end
    for j = 1, m do
      group = group + 1
      -- If there is not room for all who ask, it is decided once more, for those who fit.
      local times = shared > 0 and byte(groups, at + j - 1) or 1
      while times > 0 do
        local fit = times
        for i = 1, n do
          -- What is no string at all MGET passes over, as if there were nothing.
          local rule, value = section[i], values[k + i] or redis.pcall('GET', KEYS[k + i])
          local s1, s2, s3 = 0, 0, 0
          if value and #value == 24 then
            s1, s2, s3 = unpack_struct('>i8i8i8', value)
          else
            if value then damaged = damaged .. pack('>H', k + i) end
            values[k + i] = none
          end
          local allowed, _, remaining, _, _, reset, _, x, y, z = rule[1](now, costs[i] * times,
            rule[2], rule[3], rule[4], rule[5], rule[6], rule[7], s1, s2, s3)
          if allowed then
            local base = 4 * i
            after[base - 3], after[base - 2], after[base - 1], after[base] = x, y, z, reset
          else
            local fits = times > 1 and floor(remaining / costs[i]) or 0
            if fits < fit then fit = fits end
          end
        end
        local stuck
        if unable and fit > 0 then
          for i = 1, n do stuck = stuck or costs[i] > 0 and (not full or values[k + i] == none) end
        end
        if stuck then
          uncharged = uncharged .. pack('>H', group)
          break
        end
        if fit == times then
          for i = 1, n do
            local base = 4 * i
            if costs[i] > 0 then
              local state = pack('>i8i8i8', after[base - 3], after[base - 2], after[base - 1])
              if unlock then unlock(KEYS[k + i]) end
              call('SET', KEYS[k + i], state, 'EX', lifetime(after[base]))
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
  local reply = pack('>i8H', now, passed) .. table.concat(values, '', 1, k) .. damaged
  if careful then return uncharged .. pack('>HH', 0, unable and #unable or 0) .. (unable or '') .. reply end
  return reply
end
