-- The part of take.lua for calls of several keys that only Counters decide, without key rules
-- and each key once. Most calls that requests share are such calls, so they must cost Redis
-- little.
--
-- ARGV[1]  the byte 2, or 6 for a careful call, and sections: groups that ask the same of
--          different keys. A section is
--   a byte         the number of checks in each group
--   two bytes      the number of groups
--   a byte         1 if several requests share some of the groups
--   for each check, two bytes for where its rule begins in ARGV[1] or 0 if the rule follows,
--                  the cost, and the rule if it follows
--   for each group, if some are shared, a byte: the number of requests that ask it
-- KEYS     the keys of the groups, in their order.
--
-- The reply is one string: the time, how many of all requests passed (two bytes), the state
-- before of each key, and the numbers of the keys whose state was damaged (two bytes each).
-- The Go algorithms compute each request's decision from these.
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
        rule = { port(name, 0), p1, p2, p3, p4, p5, p6 }
        rules[place] = rule
      end
      section[i], costs[i] = rule, cost
    end
    for j = 1, m do
      group = group + 1
      -- If not all requests fit, the group is decided once more, for as many as fit.
      local times = shared > 0 and byte(groups, at + j - 1) or 1
      while times > 0 do
        local fit = times
        for i = 1, n do
          -- MGET returns nothing for a key that is not a string, so look again.
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
