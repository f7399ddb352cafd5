-- keyrules.lua reads what a key has beside its state.
-- In:   beside, what it may have; at, where that is; values, what MGET has read
-- Out:  at, behind it; tail, what the reply says of it; exempt; left, the rest of a ban (-1: forever); override, a limit, which
--       has replaced the rule, and index, of the state under it; ban, the state of the ban, with its parameters; whether
--       something was damaged
local tail, exempt, left, override, ban, first_ban, after, within, longest, damaged = ''
if beside > 3 then
  local j
  if beside % 8 > 3 then
    tail = '\0'
    at, j = read(groups, 1, at)
    if values[j] then
      local valid, kind, till, more = pcall(unpack_struct, '>Bi8', values[j])
      if not valid then
        damaged = true
      elseif till == 0 or till > now then
        if kind == 1 then
          exempt, tail = true, '\1'
        elseif kind == 2 then
          left = till == 0 and NEVER or till - now
          tail = pack('>Bi8', 2, left)
        else
          --[[include override.lua]]
        end
      end
    end
  end
  if beside > 7 then
    if not ban_left then
      --[[include ban.lua]]
    end
    at, j, first_ban, after, within, longest = read(groups, 5, at)
    ban = states[j]
    if not ban then
      ban = { x = 0, y = 0, z = 0, till = false, lives = false }
      states[j] = ban
      if values[j] and #values[j] == 24 then
        ban.x, ban.y, ban.z = unpack_struct('>i8i8i8', values[j])
      elseif values[j] then
        damaged = true
      end
    end
    tail = tail .. pack('>i8i8i8', ban.x, ban.y, ban.z)
    left = left or ban_left(now, first_ban, within, longest, ban.x, ban.y, ban.z)
  end
end
