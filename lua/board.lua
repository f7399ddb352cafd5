-- board.lua writes the report of a process, and reads those of all.
-- In:   KEYS: until when somebody looks, what they wish, the sorted set of processes that have a report, and that of
--       processes that live, both with the time in milliseconds until which each counts, and the report of this process; ARGV: the
--       process, its report or an empty text, 1 if it leaves, for how many milliseconds a report lives, for how many a look of
--       this process holds or 0, what it wishes or an empty text, how long a report may be, how many are read, and how
--       their names begin
-- Out:  the time in milliseconds, 1 if somebody looks, their wish, and of each process that lives or has a report its name, 1 if it
--       lives or 0, its time in the set, and its report, with the time and whether the process has left before it
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
local answer, size, known = { now, (reads or looked) and 1 or 0, wish }, 0, {}
-- read adds the processes of a set, and their reports.
local function read(key, lives)
  local found = redis.pcall('ZRANGEBYSCORE', key, now, FIRST_MARK, 'WITHSCORES', 'LIMIT', 0, ARGV[8])
  for i = 1, #found, 2 do
    local name, n = found[i], #answer
    if #name <= 100 and not known[name] and n < 3 + 4 * ARGV[8] then
      known[name] = true
      local escaped = string.gsub(name, '[^%w%-._~]', function(c) return string.format('%%%02X', string.byte(c)) end)
      local text = short(ARGV[9] .. escaped, math.min(ARGV[7] + 30, 3000000 - size)) or ''
      size = size + #text
      answer[n + 1], answer[n + 2], answer[n + 3], answer[n + 4] = name, lives, found[i + 1], text
    end
  end
end
if reads then
  read(KEYS[4], 1)
  read(KEYS[3], 0)
end
return answer
