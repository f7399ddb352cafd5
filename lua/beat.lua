-- beat.lua counts a process among those that live, keeps what it announces, and tells it whether somebody looks at the board.
-- In:   KEYS[1], a sorted set of processes, with the time in milliseconds until which each counts; KEYS[2], what the process
--       announces, and KEYS[3], until when somebody looks: both may be missing; ARGV: the process, for how many
--       milliseconds it counts, and the set lives, and a new text to announce or an empty one
-- Out:  how many processes there are, 1 if the text is kept or 0 if it has to be written, 1 if somebody looks, and the mark of the last
--       change of a network (0: none)
-- A key of another type is replaced.
local call = redis.call
--[[include wrongtype.lua]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
--[[include member.lua]]
member(KEYS[1], now + ARGV[2], ARGV[1], ARGV[3])
local kept, looked = 0, 0
if KEYS[2] then
  if ARGV[4] == '' then
    kept = redis.call('PEXPIRE', KEYS[2], ARGV[2])
  else
    redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[2])
    kept = 1
  end
end
--[[include looks.lua]]
--[[include short.lua]]
if KEYS[3] and looks(short(KEYS[3], 30)) then looked = 1 end
-- network.lua leaves the mark in the set, as the score of an empty name.
local all = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', '-inf', 'WITHSCORES', 'LIMIT', 0, 101)
local n, mark = #all / 2, tonumber(all[2])
if n > 100 then n = redis.call('ZCARD', KEYS[1]) end
if mark < FIRST_MARK then return { n, kept, looked, 0 } end
return { n - 1, kept, looked, mark }
