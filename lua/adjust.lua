-- adjust.lua changes a charge.
-- In:   lease_id, with the time of the charge, its turn and the delta before; the rule and its port; key, state
-- Out:  quota, 1 if anything has changed; write, and x, y, z and reset
local made, turn, delta, from = unpack_struct('>i8i8i8', lease_id)
-- A state does not have what was charged before it began, and a late cost may be of a window that is over. Units that
-- were charged ahead are booked later than they were charged: at their turn.
local over = delta < 0 and state and (made < state.since or turn > 0 and turn < state.since) or delta > 0 and turn > 0 and now >= turn
if adjust and delta < 0 then unlock(key) end -- what is given back is always written
if not adjust then
  write = nil -- the algorithm cannot change charges
elseif record then
  x = key
  write = not over and adjust(key, now, made, turn, delta, p1, p2, p3, p4, p5, p6, string.sub(lease_id, from))
else
  if not over then x, y, z = adjust(now, made, turn, delta, p1, p2, p3, p4, p5, p6, s1, s2, s3) end
  write = x
end
-- A replica that is behind does not have yet what is to be changed.
if adjust and delta > 0 and not write then unlock(key) end
-- A limit of 0 has no reset, but the state must be kept as long as it counts.
quota = write and 1 or 0
if write then
  local _
  _, _, _, _, _, reset = take(now, 0, record and MAX_EXACT or p1, p2, p3, p4, p5, p6, x, y, z)
end
