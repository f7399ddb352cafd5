-- override.lua reads an override with a limit. The limit counts in the states of its
-- family. It has no effect if its algorithm is not that of the check.
-- In:   values[j], and more, where the limit begins in it; the rule; index, of the key
-- Out:  override and tail, and the rule, or damaged; index, of the key of the family
local algorithm, whole, q1, q2, q3, q4, q5, q6, behind
valid, algorithm, whole, q1, q2, q3, q4, q5, q6, behind = pcall(unpack_struct, '>sBi8i8i8i8i8i8', values[j], more)
if not valid then
  damaged = true
elseif algorithm == name then
  place, p1 = nil, q1
  override = string.sub(values[j], more + #algorithm + 1, behind - 1)
  if whole == 1 then
    local family = string.match(values[j], '^([^{%z]*)%z', behind) or ''
    p2, p3, p4, p5, p6 = q2, q3, q4, q5, q6
    override = override .. family
    if family ~= '' then
      -- The key of the state is one of the call's, or is added behind them. While its slot is
      -- moving, it may be at another node than the others; then the call is made again in a moment.
      local other, l = string.match(KEYS[index], '.*:') .. family, 1
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
  tail = pack('>BHc0', 3, #override, override)
end
