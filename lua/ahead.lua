-- ahead.lua charges units of a Counter ahead, for requests to come: see algorithms/prepaid.go.
-- In:   want, how many at most; name, p1 to p6; cost, and room, what there was before it; x, y and z, the state after it
-- Out:  units, how many; y; of a bucket, till
local units, bucket = room - cost, name == 'token_bucket' or name == 'leaky_bucket'
local pad = 0
if bucket and p4 == 0 then
  --[[include muldiv.lua]]
  local _, up = muldiv(z + p6 - x, p2, p3)
  pad = up - (y - cost)
  if pad < 0 then pad = 0 end
end
units = units - pad
units = (units - units % 2) / 2
if units > want then units = want end
if units > 0 then
  y = y + units + pad
  if bucket then till = x + (p4 == 0 and y or y + -y % p2) * p3 / p2 end
else
  units = 0
end
