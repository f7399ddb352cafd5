-- set.lua writes an override.
-- In:   KEYS[1], where it is; ARGV: its kind, for how many microseconds it holds (0: forever), and the rest of its text
-- Out:  an empty text
local time = redis.call('TIME')
local now, life = time[1] * 1000000 + time[2], tonumber(ARGV[2])
local value = ARGV[1] .. struct.pack('>i8', life > 0 and now + life or 0) .. ARGV[3]
if life > 0 then
  redis.call('SET', KEYS[1], value, 'PX', math.floor(life / 1000) + MARGIN_MS)
else
  redis.call('SET', KEYS[1], value)
end
return ''
