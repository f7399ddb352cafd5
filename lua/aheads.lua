-- aheads.lua charges units ahead for the checks of a group that passed.
-- In:   aheads, the checks, as decide.lua has noted them; charges, of logs; all; several
-- Out:  the states, and charges, with the units; in the replies, how many these are and how long they last
for _, a in ipairs(aheads) do
  local j, want, cost, room, state, name, take, x, y, z, moved, p1, p2, p3, p4, p5, p6 = unpack(a, 1, 17)
  local lasts, till
  --[[include ahead.lua]]
  if units == 0 then
    lasts = 0
  elseif type(state) == 'table' then
    local _, _, _, _, _, reset = take(now, 0, p1, p2, p3, p4, p5, p6, x, y, z)
    state.x, state.y, state.z, state.till = x, y, z, now + reset
    if name == 'fixed_window' then
      lasts = reset - 1
    elseif name == 'sliding_window_counter' then
      lasts = x - x % p2 + p2 - now - 1
    else
      lasts = p6
      if p4 ~= 0 and x + p3 - now - 1 < lasts then lasts = x + p3 - now - 1 end
    end
  end
  for _, c in ipairs(charges or {}) do
    if units > 0 and c[2] == state then -- a log, where one charge has the cost and the units
      if c[5] < moved + p3 then c[5] = moved + p3 end
      c[3], c[8], lasts = cost + units, c[5] + p2 - moved, c[5] - now
    end
  end
  if units > 0 and not several then all[j] = string.sub(all[j], 1, -17) .. pack('>i8i8', units, lasts) end
end
