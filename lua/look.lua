-- look.lua notes that somebody looks, and reads the reports of all.
-- In:   KEYS[1], the sorted set of processes of beat.lua, and KEYS[2], that with the time until which somebody looks; ARGV: for how many
--       milliseconds this look holds or 0, how long a report may be, how many are read, and how their names begin
-- Out:  the time in milliseconds, and of each process its name, the time until which it counts, and its report: those that count the
--       longest first
-- Others may have written anything to the keys. Redis would copy a text for the script whatever its length: SETRANGE with an empty
-- text changes nothing, and tells the length. A full Redis carries it out after a write that needs no memory.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.pcall('ZREM', KEYS[2], '')
if ARGV[1] ~= '0' then
  redis.call('DEL', KEYS[2])
  redis.call('ZADD', KEYS[2], now + ARGV[1], 'until')
  redis.call('PEXPIRE', KEYS[2], ARGV[1])
end
local answer = { now }
local found = redis.pcall('ZREVRANGEBYSCORE', KEYS[1], FIRST_MARK, '-inf', 'WITHSCORES', 'LIMIT', 0, ARGV[3])
for i = 1, #found, 2 do
  local n, name = #answer, string.gsub(found[i], '[^%w%-._~]', function(c) return string.format('%%%02X', string.byte(c)) end)
  local size, text = redis.pcall('SETRANGE', ARGV[4] .. name, 0, ''), ''
  if type(size) == 'number' and size > 0 and size <= tonumber(ARGV[2]) then text = redis.call('GET', ARGV[4] .. name) end
  answer[n + 1], answer[n + 2], answer[n + 3] = found[i], found[i + 1], text
end
return answer
