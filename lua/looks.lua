-- looks.lua reads until when somebody looks at the board.
-- In:   now, in milliseconds
-- Out:  looks, a function

-- looks reports whether a value says that somebody looks. A time that no look has does not count: another program may have
-- written it.
local function looks(value)
  local till = tonumber(value or '')
  return till and till > now and till <= now + 60000
end
