-- get.lua reads an override, or the state of a ban.
-- In:   KEYS[1], where it is
-- Out:  the time, in eight bytes, and the text
local time = redis.call('TIME')
return struct.pack('>i8', time[1] * 1000000 + time[2]) .. (redis.call('GET', KEYS[1]) or '')
