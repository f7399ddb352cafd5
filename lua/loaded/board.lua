-- Made of lua/board.lua by "make scripts". Do not edit.
local call = redis.call
local function wrongtype(reply, ...)
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then call(...) end
end
local function nothing(try, key)
  local found = redis.pcall('GET', key)
  if type(found) == 'table' then wrongtype(found, 'GET', key) end
  return try('SET', key, '', found and 'NX' or 'XX')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function looks(value)
  local till = tonumber(value or '')
  return till and till > now and till <= now + 60000
end
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
local function short(key, most)
  local size = redis.pcall('SETRANGE', key, 0, '')
  if type(size) == 'table' then
    wrongtype(size, 'SETRANGE', key, 0, '')
    return nil
  end
  return size > 0 and size <= most and redis.call('GET', key) or nil
end
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
  local found, short = redis.pcall('ZRANGEBYSCORE', key, now, 1500000000000000, 'WITHSCORES', 'LIMIT', 0, ARGV[8]), {}
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
