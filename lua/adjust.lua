-- adjust.lua changes a charge.
-- In:   lease_id, with the time of the charge, its turn and the delta before; the rule and its port; key, s1 to s3, began
-- Out:  the reply
local made, turn, delta, from = unpack_struct('>i8i8i8', lease_id)
-- A state does not have what was charged before it began, and a late cost may be of a window that is over. Units that
-- were charged ahead are booked later than they were charged: at their turn.
local over = delta < 0 and counts and (made < began or turn > 0 and turn < began) or delta > 0 and turn > 0 and now >= turn
local changed
if adjust then -- or else the algorithm cannot change charges
  if delta < 0 then unlock(key) end -- what is given back is always written
  if over then -- nothing
  elseif counts then
    local x, y, z = adjust(now, made, turn, delta, p1, p2, p3, p4, p5, p6, s1, s2, s3)
    if x then
      local _, _, till = take(now, 0, p1, p2, p3, p4, p5, p6, x, y, z)
      --[[include keep.lua]]
      changed = true
    end
  elseif adjust(key, now, made, turn, delta, p1, p2, p3, p4, p5, p6, string.sub(lease_id, from)) then
    -- A limit of 0 has no reset, but the state must be kept as long as it counts.
    local _, _, _, _, _, reset = take(now, 0, MAX_EXACT, p2, p3, p4, p5, p6, key)
    call('PEXPIRE', key, floor(reset / 1000) + MARGIN_MS)
    changed, wrote = true, true
  end
  -- A replica that is behind does not have yet what is to be changed.
  if delta > 0 and not changed then unlock(key) end
end
all[k + i] = pack('>B', (changed and 1 or 0) + (damaged and 2 or 0))
