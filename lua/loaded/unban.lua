-- Made of lua/unban.lua by "make scripts". Do not edit.
local value = redis.call('GET', KEYS[1])
if value and string.byte(value) == 2 then redis.call('DEL', KEYS[1]) end
return ''
