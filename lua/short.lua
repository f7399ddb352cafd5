-- short.lua reads texts that another program may have written.
-- In:   call, and wrongtype of wrongtype.lua
-- Out:  short, a function

-- short returns the text of a key. One that is longer than it may be, of another type, or missing counts as none: Redis does
-- not copy it for the script. SETRANGE with an empty text changes nothing, and tells how long the text is.
local function short(key, most)
  local size = redis.pcall('SETRANGE', key, 0, '')
  if type(size) == 'table' then
    wrongtype(size, 'SETRANGE', key, 0, '')
    return nil
  end
  return size > 0 and size <= most and redis.call('GET', key) or nil
end
