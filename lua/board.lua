-- board.lua writes the report of a process, and reads those of all.
-- In:   KEYS: until when somebody looks, what they wish, the sorted set of processes that have a report, and that of
--       processes that live, both with the time in milliseconds until which each counts, the report of this process, and the
--       reports to read; ARGV: the process, its report or an empty text, 1 if it leaves, for how many milliseconds a report
--       lives, for how many a look of this process holds or 0, what it wishes or an empty text, how long a report may be,
--       and how many are read
-- Out:  the time in milliseconds, 1 if somebody looks, their wish, the processes that live, each followed by its time in the
--       set, those that have reports, with their times, and the reports, each with the time and whether its process has left before it
-- Others may have written anything to the keys: what is not possible is not returned.
local call = redis.call
--[[include wrongtype.lua]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
--[[include looks.lua]]
--[[include member.lua]]
--[[include short.lua]]
local looked, wish = looks(short(KEYS[1], 30)), short(KEYS[2], 100) or ''
if ARGV[6] ~= '' then
  wish = ARGV[6]
  redis.call('SET', KEYS[2], wish, 'PX', ARGV[5])
end
local reads = ARGV[5] ~= '0'
if reads then redis.call('SET', KEYS[1], now + ARGV[5], 'PX', ARGV[5]) end
if ARGV[2] ~= '' and (reads or looked) then
  redis.call('SET', KEYS[5], now .. ' ' .. ARGV[3] .. ' ' .. ARGV[2], 'PX', ARGV[4])
  member(KEYS[3], now + ARGV[4], ARGV[1], ARGV[4])
end
if not reads then return { now, looked and 1 or 0, wish, {}, {} } end
local function names(key)
  local found, short = redis.pcall('ZRANGEBYSCORE', key, now, FIRST_MARK, 'WITHSCORES', 'LIMIT', 0, ARGV[8]), {}
  for i = 1, #found, 2 do
    if #found[i] <= 100 then
      short[#short + 1] = found[i]
      short[#short + 1] = found[i + 1]
    end
  end
  return short
end
local answer, size = { now, 1, wish, names(KEYS[4]), names(KEYS[3]) }, 0
for i = 6, #KEYS do
  local text = short(KEYS[i], math.min(ARGV[7] + 30, 3000000 - size)) or ''
  size = size + #text
  answer[i] = text
end
return answer
