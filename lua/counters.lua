-- counters.lua decides what asks only Counters, without key rules and each key once. The groups of checks that ask
-- the same of different keys are a section.
--
-- In:
--   ARGV[1]  sections, each of which is
--              the rule and the cost of the first check of a group
--              the number of checks in each group
--              the number of groups
--              a text: empty, or for each group a byte, which is the number of requests that ask it
--              a text: empty, or for each check of each group two bytes, how many units it wants charged ahead
--              for each other check of a group, the rule and the cost
--            If all groups have one check, ask the same, each for one request, and want nothing ahead, it ends after
--            the first cost.
--   KEYS     the keys of the groups, in their order
--
-- Out: for each check the state before. The Go algorithms compute each request's decision from these. Where there are
-- several keys, one that is not a string is replaced like one that does not exist.
local call, pack, unpack_struct, keys = redis.call, struct.pack, struct.unpack, KEYS

local careful = ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local values = keys[2] and call('MGET', unpack(keys)) or { redis.pcall('GET', keys[1]) }
local at, k, noticed, refused = 0, 0, '', 0 -- at is -1 at the end
local span, text
repeat
  local rules, after, _
  local name, p1, p2, p3, p4, p5, p6, each, n, m, shared, aheads
  at, name, p1, p2, p3, p4, p5, p6, each, n, m, shared, aheads = cmsgpack.unpack_limit(ARGV[1], 12, at)
  if aheads == '' then aheads = nil end
  n = n or 1
  if n > 1 then
    rules, after = { { 0, name, p1, p2, p3, p4, p5, p6, each } }, {}
    for i = 2, n do
      rules[i] = { cmsgpack.unpack_limit(ARGV[1], 8, at) }
      at = rules[i][1]
    end
  end
  for j = 1, m or #keys do
    -- If not all requests fit, the group is decided once more, for as many as fit.
    local asked = shared and string.byte(shared, j) or 1
    local times = asked
    repeat
      local i, fit, ok, room, till, x, y, z, lives, cost, since = 1, times
      repeat
        if rules then _, name, p1, p2, p3, p4, p5, p6, each = unpack(rules[i]) end
        local value, s1, s2, s3 = values[k + i]
        if value and #value == 36 then
          s1, s2, s3, since, lives = unpack_struct('>i8i8i8i8I4', value)
          if since > now then since = now end
        else
          if value then
            if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then call('GET', keys[1]) end
            noticed = noticed .. pack('>H', k + i)
          end
          values[k + i] = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
          s1, s2, s3, since, lives = 0, 0, 0, now, 0
        end
        cost = each * times
        --[[include charge.lua]]
        if not ok then
          local fits = times > 1 and math.floor(room / each) or 0
          if fits < fit then fit = fits end
        elseif after then
          after[i] = { x, y, z, till, lives, cost, since, room }
        end
        i = i + 1
      until i > n
      if fit == times then
        i = 1
        repeat
          if after then x, y, z, till, lives, cost, since, room = unpack(after[i]) end
          local charged = cost
          if aheads and times == asked and not careful then
            local want = unpack_struct('>H', aheads, 2 * ((j - 1) * n + i) - 1)
            if rules then _, name, p1, p2, p3, p4, p5, p6 = unpack(rules[i]) end
            if want > 0 then
              --[[include ahead.lua]]
              charged = cost + units
            end
          end
          if charged > 0 and not careful then
            local key = keys[k + i]
            --[[include write.lua]]
          end
          i = i + 1
        until i > n
        break
      else
        times = fit
      end
    until times == 0
    refused = refused + asked - times
    k = k + n
  end
until at < 0
local all = values
--[[include reply.lua]]
