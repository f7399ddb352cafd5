-- network.lua writes or removes the override of a network.
-- In:   KEYS[1], a sorted set of networks, with the mark of the last change of each; ARGV: the network, where its override is, the set of
--       processes, and to write it its kind, for how many microseconds it holds (0: forever), and the rest of its text
-- Out:  the mark of the change: a time in microseconds, or one more than the mark before
-- What is removed stays in the set for a while, so that all processes learn of it.
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
    call('SET', name, value, 'PX', math.floor(life / 1000) + MARGIN_MS)
  else
    call('SET', name, value)
  end
end
mark = string.format('%.0f', mark)
call('ZADD', KEYS[1], mark, ARGV[1])
-- Some of the others, at random, are forgotten two hours after they have ended.
local from = now % math.max(1, call('ZCARD', KEYS[1]))
local some = call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - 7200000000), 'LIMIT', from, 8)
for i = 1, #some do
  if not call('GET', ARGV[2] .. some[i]) then call('ZREM', KEYS[1], some[i]) end
end
-- Each process sees with its next heartbeat that something has changed. Where none lives, none has to.
if call('ZCARD', ARGV[3]) > 0 then call('ZADD', ARGV[3], mark, '') end
return mark
