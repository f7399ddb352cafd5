-- Made of lua/set.lua by "make scripts". Do not edit.
local time = redis.call('TIME')
local now, life = time[1] * 1000000 + time[2], tonumber(ARGV[2])
local value = ARGV[1] .. struct.pack('>i8', life > 0 and now + life or 0) .. ARGV[3]
if life > 0 then
  redis.call('SET', KEYS[1], value, 'PX', math.floor(life / 1000) + 1000--[[MARGIN_MS]])
else
  redis.call('SET', KEYS[1], value)
end
return ''
