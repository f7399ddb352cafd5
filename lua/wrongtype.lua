-- wrongtype.lua is for scripts that read keys.
-- In:   call
-- Out:  wrongtype and unlock, functions

-- wrongtype takes the reply to a command that failed. A key of another type counts as a damaged state. Any other error
-- of a command is one of the call: the same command is made again, and Redis raises the error as this version of it
-- does.
local function wrongtype(reply, ...)
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then call(...) end
end

-- unlock is a write that changes nothing, whatever the key is. A Redis that may not write refuses it. A full Redis does
-- not, and then carries out what follows: it refuses only a first write that may need memory.
local function unlock(key)
  local done = redis.pcall('LTRIM', key, 0, -1)
  if done.err then wrongtype(done, 'LTRIM', key, 0, -1) end
end
