-- banned.lua decides about a ban where its state is at another node than that of the check.
-- In:   KEYS[1], the state of the ban; ARGV: the four parameters of the ban, and 1 to count a refusal
-- Out:  the rest of the ban in eight bytes, 0 if there is none; if a refusal is counted, that of a ban that begins with it
local call = redis.call
local ban_left, ban_refused
--[[include wrongtype.lua]]
--[[include ban.lua]]
local first, after, within, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now, till, since, count = time[1] * 1000000 + time[2], 0, 0, 0
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then wrongtype(value, 'GET', KEYS[1]) end
if type(value) == 'string' and #value == 24 then till, since, count = struct.unpack('>i8i8i8', value) end
if ARGV[5] ~= '1' then return struct.pack('>i8', ban_left(now, first, within, longest, till, since, count) or 0) end
local left, life
left, till, since, count, life = ban_refused(now, first, after, within, longest, till, since, count)
redis.call('SET', KEYS[1], struct.pack('>i8i8i8', till, since, count), 'PX', math.floor(life / 1000) + MARGIN_MS)
return struct.pack('>i8', left or 0)
