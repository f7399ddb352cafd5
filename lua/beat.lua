-- beat.lua counts a process among those that live.
-- In:   KEYS[1], a sorted set of processes, with the time in milliseconds until which each counts; ARGV: the process, and
--       for how many milliseconds it counts, and the set lives
-- Out:  how many processes there are
-- A key of another type is replaced.
local call = redis.call
--[[include wrongtype.lua]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local gone = redis.pcall('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if type(gone) == 'table' then
  wrongtype(gone, 'ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
  redis.call('DEL', KEYS[1])
end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return redis.call('ZCARD', KEYS[1])
