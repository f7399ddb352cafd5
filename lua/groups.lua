-- groups.lua decides groups of all kinds of checks.
--
-- In:
--   KEYS, ARGV[2]  as take.lua says
--   ARGV[1]        groups. A group is
--     the number of its checks
--     the number of requests that ask exactly these checks
--     the checks
--   A check is
--     what to do: 0 decide, 1 renew a lease, 2 adjust a charge, 3 peek; plus 4 if the key may have
--       an override, plus 8 if it may be banned, plus 16 if it wants units charged ahead, plus 32 if the rule is that of a
--       Counter
--     the index of its key, from 1
--     the cost
--     the ID of the lease, a text; to adjust, three numbers of eight bytes precede it: when the charge was
--       made, its turn, and the delta. The turn of a positive delta is from when it does not matter any more, or 0
--     where its rule begins in ARGV[1], counted from 0, or -1 if the rule follows
--     the rule, if it follows: the algorithm's name and six parameters
--     how many units it wants charged ahead, at most, if it does
--     the index of the override, if the key may have one
--     the index of the ban's state, and the four parameters of the ban, if the key may be banned
--
-- The checks of a group are charged together or not at all. All groups are decided at one
-- time, one after the other; a group of several requests is decided once for each, and asks only Counters; if its key may have
-- rules, that is one check. Renewals, adjustments and peeks are groups of one check. A peek charges nothing and does not count towards a ban.
--
-- Out: for each check of a group, so that Go can decide as store.Decide does:
--   a byte         1 if an adjustment or a renewal has changed anything, plus 2 if the stored state was damaged and ignored
--   of a Counter   three numbers: the state before
--   of others      a byte, 1 if the cost fits, and six numbers: quota, remaining, retry, next, reset and delay; retry is -1
--                  for never, and for an allowed check how far ahead of the time its charge is booked, because time does not
--                  go back for a key. If the cost fits and is not charged, they are those of a cost of 0.
--   two numbers    of others that want units charged ahead: how many were, and for how long from now they may be spent
--   a byte         if the key may have an override: 0 if it has none, 1 if it is exempt, 2 if it is banned, 3 if it has a limit
--     a number       if it is banned, for how long, -1 forever
--     two bytes, text  if it has a limit: the length of the text, and the limit, as store.PreparedOverride.Encoded has it
--   three numbers  if the key may be banned: the state of the ban before
-- Adjustments and renewals have only the first byte.
local call, floor, byte, pack, unpack_struct = redis.call, math.floor, string.byte, struct.pack, struct.unpack
local read, groups, mode = cmsgpack.unpack_limit, ARGV[1], byte(ARGV[2])

--[[include wrongtype.lua]]

local careful = mode > 3

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function port(name, op)
  local take, record, adjust
  --[[include ports.lua]]
  return take, record, adjust
end

-- By the index of a key: what MGET has read, and what was written since. Growing a table is slow, so where there are several
-- keys, the replies begin with some room.
local values, all = {}, { '' }
if #KEYS > 1 then
  all = { false, false, false, false }
  if mode % 4 == 1 then values = call('MGET', unpack(KEYS)) end
end

local place, name, p1, p2, p3, p4, p5, p6 -- the rule used last
local ports                               -- those that were needed
local ban_left, ban_refused
local function learn_bans()
  --[[include ban.lua]]
end
local span, text -- of write.lua
local wrote      -- whether anything was written

local at, k, noticed, refused = 0, 0, '', 0 -- at is -1 at the end, and k how many checks were decided
while at >= 0 and #groups > 0 do
  local n, copies, first
  first, n, copies = read(groups, 2, at)
  -- For how many requests the checks are decided, and for how many of them each fits. If not all fit, the checks are
  -- decided once more, for as many as do.
  local times, fit = copies, copies
  local charges -- what is to be charged if all checks pass
  local others  -- the checks of no Counters that fit, whose replies are to be those of a cost of 0 if nothing is charged
  local refusing -- the bans that count refusals
  repeat
    times, at, charges, others = fit, first, nil, nil
    for i = 1, n do
      --[[include check.lua]]
      --[[include keyrules.lua]]
      --[[include state.lua]]
      if op == 2 then
        --[[include adjust.lua]]
      elseif op == 1 then
        --[[include renew.lua]]
      else
        --[[include decide.lua]]
      end
    end
  until fit == times or fit == 0
  refused = refused + copies - fit
  if refusing then
    --[[include refuse.lua]]
  end
  if fit == 0 and others then
    for _, c in ipairs(others) do
      local i, head, take, tail, key, p1, p2, p3, p4, p5, p6 = unpack(c, 1, 11)
      local allowed, quota, remaining, retry, next, reset, delay = take(now, 0, p1, p2, p3, p4, p5, p6, key)
      all[i] = head .. pack('>Bi8i8i8i8i8i8', allowed and 1 or 0, quota, remaining, retry, next, reset, delay) .. tail
    end
  end
  if fit > 0 and charges then
    --[[include commit.lua]]
  end
  k = k + n
end

--[[include reply.lua]]
