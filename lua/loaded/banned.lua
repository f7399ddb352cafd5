-- Made of lua/banned.lua by "make scripts". Do not edit.
local call = redis.call
local ban_left, ban_refused
local function wrongtype(reply, ...)
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then call(...) end
end
local function nothing(try, key)
  local found = redis.pcall('GET', key)
  if type(found) == 'table' then wrongtype(found, 'GET', key) end
  return try('SET', key, '', found and 'NX' or 'XX')
end
local function open(now, first, within, longest, till, since, count)
  if till < 0 or till >= 9007199254740992 or since < 0 or since >= 9007199254740992 or count < 0 or count >= 9007199254740992 then
    return 0, now, 0, 0
  end
  local level = count % 64
  count = (count - level) / 64
  if till > now then
    for _ = 1, level do first = first * 2 < longest and first * 2 or longest end
    if till > now + first then till, level = 0, 0 end
  end
  if since > now or now - since >= within then since, count = now, 0 end
  if till + longest <= now then level = 0 end
  return till, since, count, level
end
ban_left = function(now, first, within, longest, till, since, count)
  till = open(now, first, within, longest, till, since, count)
  return till > now and till - now or nil
end
ban_refused = function(now, first, after, within, longest, till, since, count)
  local level, left, life
  till, since, count, level = open(now, first, within, longest, till, since, count)
  count = count + 1
  if count >= after then
    left = first
    for _ = 1, level do left = left * 2 < longest and left * 2 or longest end
    if left < longest then level = level + 1 end
    till, count = now + left, 0
    life = left
  else
    life = since + within - now
  end
  if level > 0 and life < till + longest - now then life = till + longest - now end
  return left, till, since, count * 64 + level, life
end
local first, after, within, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now, till, since, count = time[1] * 1000000 + time[2], 0, 0, 0
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then wrongtype(value, 'GET', KEYS[1]) end
if type(value) == 'string' and #value == 24 then till, since, count = struct.unpack('>i8i8i8', value) end
if ARGV[5] ~= '1' then return struct.pack('>i8', ban_left(now, first, within, longest, till, since, count) or 0) end
local left, life
left, till, since, count, life = ban_refused(now, first, after, within, longest, till, since, count)
redis.call('SET', KEYS[1], struct.pack('>i8i8i8', till, since, count), 'PX', math.floor(life / 1000) + 1000--[[MARGIN_MS]])
return struct.pack('>i8', left or 0)
