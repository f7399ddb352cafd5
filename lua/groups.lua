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
--       an override, plus 8 if it may be banned, plus 16 if it wants units charged ahead
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
-- time, one after the other; a group of several requests is decided once for each. Renewals,
-- adjustments and peeks are groups of one check. A peek is decided like a check, but charges
-- nothing and does not count towards a ban; if it would pass, its reply is that of a cost of
-- 0, with the delay of the check. The quota in the reply to an adjustment is 1 if it has changed anything, and 0 if not.
--
-- Out: for each check of a group that one request asks
--   a byte         flags: 1 allowed, 2 the stored state was damaged and ignored, 4 exempt, 8
--                  banned, 16 the ban begins, 32 decided by the limit of an override
--   numbers        quota, remaining, retry, next, reset and delay; retry is -1 for never, and
--                  for an allowed check how far ahead of the time its charge is booked,
--                  because time does not go back for a key
--   two bytes, text  with flag 32: the length of the override's limit, and the limit, as
--                  store.PreparedOverride.Encoded has it
--   two numbers    if it wants units charged ahead: how many were, and for how long from now they may be spent
-- For each check of a group that several requests ask: the state before, as a Counter's is stored.
-- The Go algorithms compute each request's decision from these.
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

-- By the index of a key: what MGET has read; the states of Counters and bans, which are read once and written once at
-- the end; and what the states of a group were before it. A state is x, y and z; till, until when it is worth something,
-- if it must be written; since, when it began; and lives, the second until which the key lives at least, false for a ban.
-- Growing a table is slow, so where there are several keys, these begin with some room.
local values, states, before = nil, { false }, nil
local all = { '' } -- the replies
if #KEYS > 1 then
  all, states, before = { false, false, false, false }, { false, false, false, false }, { false, false, false, false }
  if mode % 4 == 1 then values = call('MGET', unpack(KEYS)) end
end

-- The rule and the port used last, and the ports used before.
local place, p1, p2, p3, p4, p5, p6
local name, take, record, adjust, ports
local ban_left, ban_refused
local wrote -- whether anything was written before the end

local at, k, noticed, refused = 0, 0, '', 0 -- at is -1 at the end, and k how many checks were decided
while at >= 0 and #groups > 0 do
  local n, copies, first
  first, n, copies = read(groups, 2, at)
  -- For how many requests the checks are decided, how many of them fit, and whether they are several.
  local times, fit, several = copies, copies, copies > 1
  local charges -- of Recorders and Leasers, in groups of several checks, or with units charged ahead
  local aheads  -- the checks for which units can be charged ahead

  -- If not all requests fit, the checks are decided once more, for as many as fit. If there is
  -- only one request, the checks that passed are decided again at a cost of 0: they are not
  -- charged, because another check was refused, so their replies must not include the charge.
  local pass
  for round = 1, 2 do
    pass, at = true, first
    for i = 1, n do
      --[[include check.lua]]
      --[[include keyrules.lua]]
      --[[include state.lua]]
      local allowed, quota, remaining, retry, next, reset, delay = true, 0, 0, 0, 0, 0, 0
      local write, x, y, z -- whether the state x, y, z is to be written, or lives on
      if op == 2 then
        --[[include adjust.lua]]
      elseif op == 1 then
        --[[include renew.lua]]
      elseif exempt then
        marks = 4
        if n > 1 and not record then before[index] = false end
        if times == 0 then quota = nil end
      else
        --[[include decide.lua]]
      end

      if write and record then
        call('PEXPIRE', key, floor(reset / 1000) + MARGIN_MS)
        wrote = true
      elseif write then
        state.x, state.y, state.z, state.till = x, y, z, now + reset
      end

      if not quota then -- the reply of the first round holds
      elseif not several then
        local reply = pack('>Bi8i8i8i8i8i8', (allowed and 1 or 0) + (damaged and 2 or 0) + (marks or 0),
          quota, remaining, retry, next, reset, delay)
        if override then reply = reply .. pack('>Hc0', #override, override) end
        all[k + i] = want and reply .. pack('>i8i8', 0, 0) or reply
      elseif round == 1 then
        all[k + i] = pack('>i8i8i8i8I4', s1, s2, s3, 0, 0)
        if damaged then noticed = noticed .. pack('>H', k + i) end
      end
    end
    if pass or n == 1 and not several then break end
    charges, aheads = nil, nil
    times = round == 1 and fit or 0
    if times == 0 and several and n == 1 then break end
  end
  if several then refused = refused + copies - times end
  if aheads and pass and times == copies then
    --[[include aheads.lua]]
  end
  k = k + n
  if charges and times > 0 then
    wrote = true
    for _, c in ipairs(charges) do
      if c[3] > 0 then
        c[1](c[2], c[3], c[4], c[5], c[6], c[7])
        call('PEXPIRE', c[2], floor(c[8] / 1000) + MARGIN_MS)
      end
    end
  end
end

local span, text
for i = 1, #KEYS do
  local state = states[i]
  if state and state.till then
    local key, x, y, z, since, till, lives = KEYS[i], state.x, state.y, state.z, state.since, state.till, state.lives
    if since and since > now then since = now end -- the clock has gone back: what is charged now is in the state
    if lives then
      --[[include write.lua]]
    else
      call('SET', key, pack('>i8i8i8', x, y, z), 'EX', floor((till - now) / 1000000) + MARGIN_S)
    end
  end
end
--[[include reply.lua]]
