-- What take.lua does with a setting that is a limit, which counts in the state of its family.
-- Of an algorithm that the check does not ask, it means nothing.
local of, whole, q1, q2, q3, q4, q5, q6, behind
read, of, whole, q1, q2, q3, q4, q5, q6, behind = pcall(unpack_struct, '>sBi8i8i8i8i8i8', values[j], more)
if not read then
  damaged = true
elseif of == name then
  above, place, p1 = 32, nil, q1
  own = string.sub(values[j], more + #of + 1, behind - 1)
  if whole == 1 then
    -- Older versions wrote no family: such a limit counts with the rule's if they do not
    -- differ in more than how much fits, and by itself if they do.
    local family = string.match(values[j], '^([^{%z]*)%z', behind) or
      (p2 == q2 and p3 == q3 and p4 == q4 and p5 == q5 and p6 == q6 and '' or 'own')
    p2, p3, p4, p5, p6 = q2, q3, q4, q5, q6
    own = own .. family
    if family ~= '' then
      -- The state is among the keys of the call, or else comes behind them. While its slot is
      -- being moved, it may be at another node than they are: then each is asked by itself.
      local other, l = string.match(KEYS[k], '.*:') .. family, 1
      while KEYS[l] and KEYS[l] ~= other do l = l + 1 end
      if not KEYS[l] then
        local found = redis.pcall('GET', other)
        if type(found) == 'table' and not string.find(found.err, 'WRONGTYPE') then
          if wrote then error(found.err) end
          return redis.error_reply('TRYAGAIN ' .. found.err)
        end
        values[l] = found
      end
      KEYS[l], k = other, l
    end
  end
end
