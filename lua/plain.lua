-- The part of counters.lua for calls whose text ends after the first check: all keys are asked the
-- same, each for one request. It does only what these need, and writes each state when it is decided.
if not ARGV[2] then
  local call, pack, unpack_struct, keys, time = redis.call, struct.pack, struct.unpack, KEYS, --[[clock]] redis.call('TIME')
  local key, now, k, noticed, refused, values, value, span, text = keys[1], time[1] * 1000000 + time[2], 1, '', 0
  local name, p1, p2, p3, p4, p5, p6, cost = cmsgpack.unpack(ARGV[1])
  if keys[2] then
    values = call('MGET', unpack(keys))
    value = values[1]
  else
    value = redis.pcall('GET', key)
  end
  repeat
    local s1, s2, s3, lives, ok, room, till, x, y, z
    if value and #value == 28 then
      s1, s2, s3, lives = unpack_struct('>i8i8i8I4', value)
    else
      local lent = value and #value % 40 == 28
      if not lent then s1, s2, s3, lives = 0, 0, 0, 0 end
      if value then
        if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then call('GET', key) end
        noticed = noticed .. pack('>H', (lent and 32768 or 0) + k)
      end
      value = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
      if values then values[k] = value end
    end
    if lives then
      --[[charge]]
    end
    if not ok then
      refused = refused + 1
    elseif cost > 0 then
      --[[write]]
    end
    k = k + 1
    key = keys[k]
    if key then value = values[k] end
  until not key
  value = value .. noticed .. (refused > 0 and ' ' .. refused .. ' ' or ' 0 ') .. time[1] .. ' ' .. time[2]
  if not values then return value end
  values[k - 1] = value
  return table.concat(values)
end
