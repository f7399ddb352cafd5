-- Made of lua/get.lua by "make scripts". Do not edit.
local time = redis.call('TIME')
return struct.pack('>i8', time[1] * 1000000 + time[2]) .. (redis.call('GET', KEYS[1]) or '')
