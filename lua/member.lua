-- member.lua notes who is a member of a set for some time.
-- In:   call, now in milliseconds, and wrongtype of wrongtype.lua
-- Out:  member, a function

-- member adds a name to a sorted set until a time, removes those whose time is over, and keeps the set for some milliseconds. What
-- is over goes last: a set that becomes empty is no key any more, and while its slot moves to another node, a script may not
-- write it again. The first write needs no memory, so a full Redis carries out the others.
local function member(key, till, name, lives)
  local kept, added = call('PEXPIRE', key, lives), redis.pcall('ZADD', key, till, name)
  if type(added) == 'table' then
    wrongtype(added, 'ZADD', key, till, name)
    call('DEL', key)
    kept = 0
    call('ZADD', key, till, name)
  end
  call('ZREMRANGEBYSCORE', key, '-inf', now)
  if kept == 0 then call('PEXPIRE', key, lives) end
end
