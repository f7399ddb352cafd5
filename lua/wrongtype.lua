-- wrongtype.lua is for scripts that read keys.
-- In:   call
-- Out:  wrongtype and nothing, functions

-- wrongtype takes the reply to a command that failed. A key of another type counts as a damaged state. Any other error
-- of a command is one of the call: the same command is made again, and Redis raises the error as this version of it
-- does.
local function wrongtype(reply, ...)
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then call(...) end
end

-- nothing tries a write that changes nothing, by redis.call or redis.pcall. Redis treats it like one that may need
-- memory.
local function nothing(try, key)
  local found = redis.pcall('GET', key)
  if type(found) == 'table' then wrongtype(found, 'GET', key) end
  return try('SET', key, '', found and 'NX' or 'XX')
end
