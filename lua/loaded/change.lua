-- Made of lua/change.lua by "make scripts". Do not edit.
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
local number = time[1] * 1000000 + time[2]
redis.call('PEXPIRE', KEYS[1], 86400000) -- a first write that needs no memory: see careful.lua
local before = redis.pcall('GET', KEYS[1])
if type(before) == 'table' then
  wrongtype(before, 'GET', KEYS[1])
  before = ''
end
before = before and #before % 16 == 0 and before or ''
local last = #before > 0 and struct.unpack('>i8', before) or 0
if last >= number and last < 9007199254740992 - 1 then number = last + 1 end
local value = struct.pack('>i8c8', number, ARGV[1]) .. string.sub(before, 1, 16 * (512 - 1))
redis.call('SET', KEYS[1], value, 'EX', 86400)
return ''
