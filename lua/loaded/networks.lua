-- Made of lua/networks.lua by "make scripts". Do not edit.
local time = redis.call('TIME')
local last = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', '-inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
local out = {struct.pack('>i8i8', time[1] * 1000000 + time[2], last and tonumber(last) or 0)}
if last and tonumber(last) ~= tonumber(ARGV[1]) then
  local found = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
  for i = 1, #found, 2 do
    local value = redis.call('GET', ARGV[3] .. found[i]) or ''
    out[#out + 1] = struct.pack('>i8i4', tonumber(found[i + 1]), #found[i]) .. found[i] .. struct.pack('>i4', #value) .. value
  end
end
return table.concat(out)
