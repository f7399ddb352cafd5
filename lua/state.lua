-- state.lua reads the state of a check, if it is that of a Counter, unless it is known.
-- In:   index, of the key; counts; values and states
-- Out:  key; state, and s1 to s3 of it; damaged
local key, state, s1, s2, s3 = KEYS[index], states[index], 0, 0, 0
if counts and state then
  s1, s2, s3 = state.x, state.y, state.z
elseif counts then
  local value, since, lives = values and values[index] or redis.pcall('GET', key), now, 0
  if value and #value == 36 then
    s1, s2, s3, since, lives = unpack_struct('>i8i8i8i8I4', value)
  elseif value then
    if type(value) == 'table' then wrongtype(value, 'GET', key) end
    damaged = true
  end
  state = { x = s1, y = s2, z = s3, till = false, since = since, lives = lives }
  states[index] = state
end
