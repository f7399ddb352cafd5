-- reply.lua ends a call of take.lua.
-- In:   all, the k replies to checks; noticed, the numbers of those that are damaged; how many requests were
--       refused; time
-- Out:  returns the reply
local reply = (all[k] or '') .. noticed .. (refused > 0 and ' ' .. refused .. ' ' or ' 0 ') .. time[1] .. ' ' .. time[2]
if k > 1 then -- making a long text twice would cost more
  all[k] = reply
  reply = table.concat(all, '', 1, k)
end
return reply
