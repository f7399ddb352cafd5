-- The part of take.lua for calls that ask one Counter the same for each key: one check for one
-- request, without key rules. Most calls are such calls, many of one key, so this does only what it
-- must: the port is inlined, and computes only what is charged.
--
-- ARGV[1]  the rule, as take.lua has it, and the cost
-- KEYS     the keys, each once
--
-- The reply is one string: the state before of each key as it is stored, the numbers of the keys
-- whose state was damaged (two bytes each), and in text, each after a space, how many of all requests
-- did not pass, and the time in seconds and microseconds. The Go algorithms compute each request's
-- decision from these. Where there are several keys, one that is not a string is replaced like one
-- that does not exist. To the number of a key of which parts are lent, 32768 is added: see lend.lua.
-- Such a key is not decided.
if not ARGV[2] then
  local call, pack, unpack_struct, keys, time = redis.call, struct.pack, struct.unpack, KEYS, --[[clock]] redis.call('TIME')
  local key, now, k, damaged, refused, values, value, span, text = keys[1], time[1] * 1000000 + time[2], 1, '', 0
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
      if value then damaged = damaged .. pack('>H', (lent and 32768 or 0) + k) end
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
  return (values and table.concat(values) or value) .. damaged .. (refused > 0 and ' ' .. refused .. ' ' or ' 0 ') .. time[1] .. ' ' .. time[2]
end
