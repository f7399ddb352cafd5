-- The part of a careful call that finds out why Redis cannot write, and whether the reason is memory.
local done = nothing(redis.pcall, KEYS[1])
unable = type(done) == 'table' and done.err and string.sub(done.err, 1, 300)
full = unable and string.find(unable, 'OOM command', 1, true)
