-- careful.lua finds out for a careful call whether Redis can write.
-- In:   call, and the functions of wrongtype.lua
-- Out:  unable, why Redis cannot write, nil if it can; full, whether the reason is memory; then unlock, a function
local done = nothing(redis.pcall, KEYS[1])
unable = type(done) == 'table' and done.err and string.sub(done.err, 1, 300)
full = unable and string.find(unable, 'OOM command', 1, true)
if full then
  -- Redis refuses only a first write that needs memory. This one needs none, and the write
  -- that follows sets the key's time to live again.
  unlock = function(key) call('PEXPIRE', key, MARGIN_MS) end -- it returns nil, because it is needed once
end
