-- The part of a careful call that finds out why Redis cannot write, and whether the reason is memory.
local found = redis.pcall('GET', KEYS[1])
if type(found) == 'table' then wrongtype(found, 'GET', KEYS[1]) end
-- This never writes anything, but Redis treats it like a write that may need memory.
local done = redis.pcall('SET', KEYS[1], '', found and 'NX' or 'XX')
unable = type(done) == 'table' and done.err and string.sub(done.err, 1, 300)
full = unable and string.find(unable, 'OOM command', 1, true)
