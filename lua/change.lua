-- change.lua notes that the rules of a key have changed: its override, its ban or its state.
-- In:   KEYS[1], the last changes, the newest first; ARGV: eight bytes of a hash of the zone and its key
-- Out:  an empty text
-- A change is its number and those eight bytes. The numbers grow: they are times in microseconds, or one more than the
-- number before.
local call = redis.call
--[[include wrongtype.lua]]
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
if last >= number and last < MAX_EXACT - 1 then number = last + 1 end
local value = struct.pack('>i8c8', number, ARGV[1]) .. string.sub(before, 1, 16 * (CHANGES - 1))
redis.call('SET', KEYS[1], value, 'EX', 86400)
return ''
