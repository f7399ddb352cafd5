-- state.lua reads the state of a check, if it is that of a Counter.
-- In:   index, of the key; counts; values
-- Out:  key; s1 to s3, the state; since, when it began, and began, the same unless the clock has gone back; lives, the second
--       until which the key lives; damaged
local key, s1, s2, s3, since, lives = KEYS[index], 0, 0, 0, now, 0
if counts then
  local value = values[index]
  if value == nil then value = redis.pcall('GET', key) end
  if value and #value == 36 then
    s1, s2, s3, since, lives = unpack_struct('>i8i8i8i8I4', value)
  elseif value then
    if type(value) == 'table' then wrongtype(value, 'GET', key) end
    damaged = true
  end
end
local began = since
if since > now then since = now end -- the clock has gone back: what is charged now is in the state
