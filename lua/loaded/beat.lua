-- Made of lua/beat.lua by "make scripts". Do not edit.
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
local function looks(value)
  local till = tonumber(value or '')
  return till and till > now and till <= now + 60000
end
local function short(key, most)
  local size = redis.pcall('SETRANGE', key, 0, '')
  if type(size) == 'table' then
    wrongtype(size, 'SETRANGE', key, 0, '')
    return nil
  end
  return size > 0 and size <= most and redis.call('GET', key) or nil
end
if KEYS[3] and looks(short(KEYS[3], 30)) then looked = 1 end
local all = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', '-inf', 'WITHSCORES', 'LIMIT', 0, 101)
local n, mark = #all / 2, tonumber(all[2])
if n > 100 then n = redis.call('ZCARD', KEYS[1]) end
if mark < 1500000000000000 then return { n, kept, looked, 0 } end
return { n - 1, kept, looked, mark }
