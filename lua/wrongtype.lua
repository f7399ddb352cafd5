-- The part of scripts that reads keys. A key of another type counts as a damaged state. Any other error
-- of a command is one of the call: the same command is made again, and Redis raises the error as this
-- version of it does.
local function wrongtype(reply, ...)
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then call(...) end
end
