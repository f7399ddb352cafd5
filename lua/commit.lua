-- commit.lua charges what a group is to be charged, and units ahead if all requests fit.
-- In:   charges, as decide.lua has noted them; times and copies; all
-- Out:  of logs, the replies say how many units these are and how long they last
for _, c in ipairs(charges) do
  local j, name, key, index, since, lives, cost, want, room, x, y, z, till, lease_id, record, moved,
    p1, p2, p3, p4, p5, p6 = unpack(c, 1, 22)
  local charged, t = cost, y
  if want > 0 and times == copies then
    --[[include ahead.lua]]
    charged = cost + units
  end
  if charged == 0 then -- nothing
  elseif not record then
    --[[include keep.lua]]
  else
    if charged > cost then -- one charge of a log has the cost and the units
      if t < moved + p3 then t = moved + p3 end
      till = t + p2 - moved
      all[j] = string.sub(all[j], 1, 50) .. pack('>i8i8', charged - cost, t - now) .. string.sub(all[j], 67)
    end
    record(key, charged, x, t, z, lease_id)
    call('PEXPIRE', key, floor(till / 1000) + MARGIN_MS)
    wrote = true
  end
end
