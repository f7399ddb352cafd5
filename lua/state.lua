-- state.lua reads the state of a check, if it is that of a Counter, unless it is known.
-- In:   index, of the key; record, of the port; values, states and before
-- Out:  key; state, and s1 to s3 of it, or s1 is the key; damaged
local key, state = KEYS[index], states[index]
local s1, s2, s3 = key
if not record then
  if round == 2 and n > 1 and before[index] then
    state.x, state.y, state.z, state.till = unpack(before[index])
  end
  if state then
    s1, s2, s3 = state.x, state.y, state.z
  else
    local value, since, lives = values and values[index] or redis.pcall('GET', key), now, 0
    s1, s2, s3 = 0, 0, 0
    if value and #value == 36 then
      s1, s2, s3, since, lives = unpack_struct('>i8i8i8i8I4', value)
    elseif value then
      if type(value) == 'table' then wrongtype(value, 'GET', key) end
      damaged = true
    end
    state = { x = s1, y = s2, z = s3, till = false, since = since, lives = lives }
    states[index] = state
  end
end
