-- keyrules.lua reads what a key has beside its state.
-- In:   beside, what it may have; at, where that is; values, what MGET has read
-- Out:  at, behind it; tail, what the reply says of it; exempt; left, the rest of a ban (-1: forever); override, a limit, which
--       has replaced the rule, and index, of the state under it; ban, the index of the ban's state, and its parameters; whether
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
    at, ban, first_ban, after, within, longest = read(groups, 5, at)
    local value = values[ban]
    if value and #value ~= 24 then
      damaged, value = true, false
      values[ban] = false
    end
    tail = tail .. (value or '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0')
    if value and not ban_left then learn_bans() end
    left = left or value and ban_left(now, first_ban, within, longest, unpack_struct('>i8i8i8', value))
  end
end
