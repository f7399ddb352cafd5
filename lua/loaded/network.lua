-- Made of lua/network.lua by "make scripts". Do not edit.
local call = redis.call
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = call('ZREVRANGEBYSCORE', KEYS[1], '+inf', '-inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
local mark = last and math.max(now, tonumber(last) + 1) or now
local name, kind, life = ARGV[2] .. ARGV[1], ARGV[4], tonumber(ARGV[5])
if not kind then
  call('DEL', name)
else
  local value = kind .. struct.pack('>i8', life > 0 and now + life or 0) .. ARGV[6]
  if life > 0 then
    call('SET', name, value, 'PX', math.floor(life / 1000) + 1000--[[MARGIN_MS]])
  else
    call('SET', name, value)
  end
end
mark = string.format('%.0f', mark)
call('ZADD', KEYS[1], mark, ARGV[1])
local from = now % math.max(1, call('ZCARD', KEYS[1]))
local some = call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - 7200000000), 'LIMIT', from, 8)
for i = 1, #some do
  if not call('GET', ARGV[2] .. some[i]) then call('ZREM', KEYS[1], some[i]) end
end
if call('ZCARD', ARGV[3]) > 0 then call('ZADD', ARGV[3], mark, '') end
return mark
