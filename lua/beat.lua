-- beat.lua counts a process among those that live, keeps its report, and tells it whether somebody looks.
-- In:   KEYS[1], a sorted set of processes, with the time in milliseconds until which each counts; KEYS[2], the report of the process, and
--       KEYS[3], a sorted set with the time until which somebody looks: both may be missing; ARGV: the process, for how many
--       milliseconds it counts, for how many more it is remembered, and a new report or an empty text
-- Out:  how many processes there are, 1 if the report is kept or 0 if it has to be written, 1 if somebody looks, and the mark of the
--       last change of a network (0: none)
-- A key of another type is replaced.
local call = redis.call
--[[include wrongtype.lua]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local till, lives = now + ARGV[2], ARGV[2] + ARGV[3]
-- The first write needs no memory, so a full Redis carries out the others.
local kept, added = call('PEXPIRE', KEYS[1], lives), redis.pcall('ZADD', KEYS[1], till, ARGV[1])
if type(added) == 'table' then
  wrongtype(added, 'ZADD', KEYS[1], till, ARGV[1])
  call('DEL', KEYS[1])
  kept = 0
  call('ZADD', KEYS[1], till, ARGV[1])
end
-- What is over goes last: a set that becomes empty is no key any more, and while its slot moves to another node, a script may
-- not write it again.
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[3])
if kept == 0 then call('PEXPIRE', KEYS[1], lives) end
local reported, looked = 0, 0
if KEYS[2] then
  if ARGV[4] == '' then
    reported = redis.call('PEXPIRE', KEYS[2], lives)
  else
    redis.call('SET', KEYS[2], ARGV[4], 'PX', lives)
    reported = 1
  end
  -- Another program may have written anything: a time that no look has does not count.
  local look = tonumber(redis.pcall('ZSCORE', KEYS[3], 'until') or '')
  if look and look > now and look <= now + 60000 then looked = 1 end
end
-- network.lua leaves the mark in the set, as the score of an empty name.
local all = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', '(' .. now, 'WITHSCORES', 'LIMIT', 0, 101)
local n, mark = #all / 2, tonumber(all[2])
if n > 100 then n = redis.call('ZCOUNT', KEYS[1], '(' .. now, '+inf') end
if mark < FIRST_MARK then return { n, reported, looked, 0 } end
return { n - 1, reported, looked, mark }
