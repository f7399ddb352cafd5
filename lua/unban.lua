-- unban.lua deletes an override if it is a ban.
-- In:   KEYS[1], where it is
-- Out:  an empty text
local value = redis.call('GET', KEYS[1])
if value and string.byte(value) == BANNED then redis.call('DEL', KEYS[1]) end
return ''
