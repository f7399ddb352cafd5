-- take.lua decides checks by the clock of this Redis.
--
-- KEYS     the keys of all states, each once.
-- ARGV[1]  what to decide: numbers and texts as MessagePack has them.
-- ARGV[2]  a byte for the mode: 0, or 1 to read all keys that are strings at once; 2 is that of
--          counters.lua, and 4 is added for a careful call. The simplest calls of counters.lua have none.
--
-- In modes 0 and 1, ARGV[1] has groups. A group is
--   the number of its checks
--   the number of requests that ask exactly these checks
--   the checks
-- A check is
--   what to do: 0 decide, 1 renew a lease, 2 adjust a charge, 3 peek; plus 4 if the key may have
--     an override, plus 8 if it may be banned
--   the index of its key, from 1
--   the cost
--   the hold, a text; to adjust, three numbers of eight bytes precede the hold: when the charge was
--     made, its turn, and the delta
--   where its rule begins in ARGV[1], counted from 0, or -1 if the rule follows
--   the rule, if it follows: the algorithm's name and six parameters
--   the index of the override, if the key may have one
--   the index of the ban's state, and the four parameters of the ban, if the key may be banned
--
-- The checks of a group are charged together or not at all. All groups are decided at one
-- time, one after the other; a group of several requests is decided once for each. Renewals,
-- adjustments and peeks are groups of one check. A peek is decided like a check, but charges
-- nothing and does not count towards a ban; if it would pass, its reply is that of a cost of
-- 0. The quota in the reply to an adjustment is 1 if it has changed anything, and 0 if not.
--
-- The reply is one string. It begins with the checks, in their order. For each check of a group that
-- one request asks:
--   a byte         flags: 1 allowed, 2 the stored state was damaged and ignored, 4 exempt, 8
--                  banned, 16 the ban begins, 32 decided by the limit of an override, 64 parts
--                  of the key are lent, so the group is not decided: see lend.lua
--   numbers        quota, remaining, retry, next, reset and delay; retry is -1 for never, and
--                  for an allowed check how far ahead of the time its charge is booked,
--                  because time does not go back for a key
--   two bytes, text  with flag 32: the length of the override's limit, and the limit, as
--                  store.PreparedOverride.Encoded has it
-- For each check of a group that several requests ask: the state before, as a Counter's is stored.
-- The Go algorithms compute each request's decision from these. Then there are
--   two bytes each   the numbers of those of these checks, counted from 1 among all, whose stored state
--                    was damaged, or of whose key parts are lent: then 32768 is added
--   in text, each after a space: how many of the requests of these groups did not pass, and the
--   time in seconds and microseconds
--
-- In replies and states, numbers are big-endian integers of eight bytes. Times and durations are in
-- microseconds.
--
-- The port of an algorithm sets functions. For a Counter, whose state this script keeps as a
-- string of three integers and the second until which the key lives at least (four bytes):
--   take(now, cost, p1, .., p6, s1, s2, s3) -> allowed, quota, remaining, retry, next,
--                                              reset, delay, s1, s2, s3
-- The text of take may have a comment '[[charged allowed, remaining, till, s1, s2, s3]]', with
-- local variables or expressions: at this point it is decided whether the cost fits, remaining
-- is what there was before the charge, the state is that after it, and till is until when it is
-- worth something (if allowed). Then calls that only charge need not compute the rest. This part
-- of the text must use no functions of the port. A line '[[muldiv]]' makes muldiv known.
--   adjust(now, at, turn, delta, p1, .., p6, s1, s2, s3) -> s1, s2, s3 or nothing
-- For a Recorder or a Lender, which keep what they need under the key:
--   take(now, cost, p1, .., p6, key) -> allowed, .., delay, a, b, c, damaged
--   record(key, cost, a, b, c, hold)
--   adjust(key, now, at, turn, delta, p1, .., p6, hold) -> whether it changed anything
-- If a charge may take no more memory than it frees, in a careful call also:
--   spares(a, b, c) -> whether this charge is such a one
-- p1 is how much fits. None of these functions lets keys expire; this script does. A port may
-- set adjust only if op is 2.
--
-- Calls that only Counters decide, without key rules and each key once, have a shorter form and
-- reply: see counters.lua. Most calls are such calls.
--
-- If Redis refuses a call's first write, the call fails, and nothing was written. Then it is
-- sent again as a careful call, which first finds out whether Redis can write. If Redis
-- cannot, checks that need no write are still decided: refusals and peeks. If the reason is
-- memory, so are charges that need no more memory than their keys have. The reply then begins
-- with the numbers of the groups that were not charged but should have been (two bytes each,
-- from 1), two zero bytes, and the reason why Redis cannot write: two bytes for the length, and
-- the text. The rest is as usual; for a group that was not charged it means nothing.
--
-- All of this runs for each call, and functions and tables cost time to make. So there are few
-- of them. What most calls need is outside the large function: to call one takes room for all of
-- its variables.

--[[plain]]

local call, floor, byte, pack, unpack_struct = redis.call, math.floor, string.byte, struct.pack, struct.unpack
local read, groups = cmsgpack.unpack_limit, ARGV[1]
local mode = byte(ARGV[2])

-- In a careful call: why Redis cannot write; whether the reason is memory; the groups that
-- were not charged; and which states need memory that they do not have yet.
local careful, unable, full, uncharged, lacks, unlock = mode > 3
if careful then
  mode, uncharged, lacks = mode - 4, '', {}
  -- This never writes anything, but Redis treats it like a write that may need memory.
  local done = redis.pcall('SET', KEYS[1], '', redis.pcall('GET', KEYS[1]) and 'NX' or 'XX')
  unable = type(done) == 'table' and done.err and string.sub(done.err, 1, 300)
  full = unable and string.find(unable, 'OOM command', 1, true)
  if full then
    -- Redis refuses only a first write that needs memory. This one needs none, and the write
    -- that follows sets the key's time to live again.
    unlock = function(key) call('PEXPIRE', key, MARGIN_MS) end -- it is needed once, so it returns nil
  end
end

local time = --[[clock]] redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- The reply: the last check, all checks if there are several, and how many; the numbers of those that
-- are damaged or lent, and how many requests did not pass.
local last, all, n, noticed, refused = nil, nil, 0, '', 0

--[[counters]]

-- The variables are arguments, because to reach them from inside costs more.
if not last then last, all, n, noticed, refused, uncharged = (function(call, floor, byte, pack, unpack_struct, read, groups, mode, now, careful, unable, full, uncharged, lacks, unlock)

local function port(name, op)
  local take, record, adjust, spares
  --[[algorithms]]
  return take, record, adjust, spares
end

-- The states of Counters are read once, and written once at the end. For key k, known[5k-4] to
-- known[5k-2] is the state, known[5k-1] the second until which the key lives at least (false for
-- the state of a ban), and known[5k] until when the state is worth something if it must be
-- written. before keeps what a group has changed until all of its checks have passed. Growing a
-- table is slow, so where there are several keys, these begin with some room.
local reply, replies, values, before
local noticed, refused = '', 0
local known = {}
if #KEYS > 1 then
  replies = { false, false, false, false }
  known = { false, false, false, false, false, false, false, false, false, false, false, false, false, false, false }
  before = { false, false, false, false, false, false, false, false, false, false, false, false, false, false, false }
  if mode == 1 then values = call('MGET', unpack(KEYS)) end
end
local answers, checks = 0, 0 -- the numbers of replies and of checks

-- The rule and the port used last, and the ports used before.
local place, p1, p2, p3, p4, p5, p6
local name, take, record, adjust, spares, ports
local ban_left, ban_refused
local wrote -- whether anything was written before the end

local at, group = 0, 0 -- at is -1 at the end
while at >= 0 and #groups > 0 do
  local n, copies, first
  first, n, copies = read(groups, 2, at)
  -- For how many requests the checks are decided, how many of them fit, and whether they are several.
  local times, fit, room = copies, copies, copies > 1
  if room and not replies then
    replies, answers, reply = { reply }, reply and 1 or 0, nil
  end
  local charges -- of Recorders and Lenders, in groups of several checks
  local stuck   -- whether a charge cannot be written
  group = group + 1

  -- If not all requests fit, the checks are decided once more, for as many as fit. If there is
  -- only one request, the checks that passed are decided again at a cost of 0: they are not
  -- charged, because another check was refused, so their replies must not include the charge.
  local pass
  for round = 1, 2 do
    pass, at = true, first
    for i = 1, n do
      local op, k, cost, hold, offset
      at, op, k, cost, hold, offset = read(groups, 5, at)
      local opcode = op
      if op > 3 then op = op % 4 end

      if offset ~= place or op == 2 and not adjust then
        local wanted, after
        place = offset >= 0 and offset or at
        after, wanted, p1, p2, p3, p4, p5, p6 = read(groups, 7, place)
        if offset < 0 then at = after end
        if wanted ~= name or op == 2 and not adjust then
          if name then
            ports = ports or {}
            ports[name] = { take, record, adjust, spares }
          end
          name = wanted
          local made = ports and ports[wanted]
          if made and (op ~= 2 or made[3]) then
            take, record, adjust, spares = made[1], made[2], made[3], made[4]
          else
            take, record, adjust, spares = port(name, op)
          end
        end
      end

      -- The key rules: whether the key is exempt, the rest of its ban (-1: for ever), the flags
      -- that they add to the reply, the limit of the override, and the state and the parameters
      -- of the ban.
      local exempt, left, marks, override, ban, first_ban, after, within, longest, damaged, lent
      if opcode > 3 then
        local j
        if opcode % 8 > 3 then
          at, j = read(groups, 1, at)
          if values[j] then
            local valid, kind, till, more = pcall(unpack_struct, '>Bi8', values[j])
            if not valid then
              damaged = true
            elseif till == 0 or till > now then
              if kind == 1 then
                exempt = true
              elseif kind == 2 then
                left = till == 0 and NEVER or till - now
              else
                --[[override]]
              end
            end
          end
        end
        if opcode > 7 then
          if not ban_left then
            --[[ban]]
          end
          at, j, first_ban, after, within, longest = read(groups, 5, at)
          ban = 5 * j - 4
          if not known[ban] then
            known[ban], known[ban + 1], known[ban + 2], known[ban + 3], known[ban + 4] = 0, 0, 0, false, false
            if values[j] and #values[j] == 24 then
              known[ban], known[ban + 1], known[ban + 2] = unpack_struct('>i8i8i8', values[j])
            else
              if values[j] then damaged = true end
              if unable then lacks[ban] = true end
            end
          end
          left = left or ban_left(now, within, longest, known[ban], known[ban + 1], known[ban + 2])
        end
      end

      local key, base = KEYS[k], 5 * k - 4
      local s1, s2, s3 = key
      if not record then
        if round == 2 and n > 1 and before[base] then
          known[base], known[base + 1], known[base + 2], known[base + 4] = before[base], before[base + 1], before[base + 2], before[base + 4]
        end
        if known[base] then
          s1, s2, s3 = known[base], known[base + 1], known[base + 2]
        else
          local value, lives = values and values[k] or redis.pcall('GET', key), 0
          s1, s2, s3 = 0, 0, 0
          if value and #value == 28 then
            s1, s2, s3, lives = unpack_struct('>i8i8i8I4', value)
          elseif value then
            lent = #value % 40 == 28
            damaged = not lent
          end
          if unable then lacks[base] = lives == 0 end
          if not lent then
            known[base], known[base + 1], known[base + 2], known[base + 3], known[base + 4] = s1, s2, s3, lives, false
          end
        end
      end

      local allowed, quota, remaining, retry, next, reset, delay = true, 0, 0, 0, 0, 0, 0
      local write, x, y, z, broken, _
      if op == 2 then
        local made, turn, delta, from = unpack_struct('>i8i8i8', hold)
        if not adjust then
          write = nil -- the algorithm cannot change charges
        elseif record then
          x = key
          stuck = unable and (not full or delta > 0)
          write = not stuck and adjust(key, now, made, turn, delta, p1, p2, p3, p4, p5, p6, string.sub(hold, from))
        else
          x, y, z = adjust(now, made, turn, delta, p1, p2, p3, p4, p5, p6, s1, s2, s3)
          stuck = x and unable and (not full or lacks[base])
          write = x and not stuck
        end
        -- A limit of 0 has no reset, but the state must be kept as long as it counts.
        quota = write and 1 or 0
        if write then _, _, _, _, _, reset = take(now, 0, record and MAX_EXACT or p1, p2, p3, p4, p5, p6, x, y, z) end
      elseif op == 1 then
        allowed, quota, remaining, retry, next, reset, delay, x, y, z, damaged = take(now, 0, MAX_EXACT, p2, p3, p4, p5, p6, key)
        if reset < y then reset = y end
        stuck = unable and not full -- a lease that exists needs no more memory
        if not stuck then
          if unlock then unlock = unlock(key) end
          record(key, cost, x, y, z, hold)
          write = true
        end
      elseif exempt then
        marks = 4
        if n > 1 and not record then before[base] = false end
        if times == 0 then quota = nil end
      else
        allowed, quota, remaining, retry, next, reset, delay, x, y, z, broken =
          take(now, cost * (times > 0 and times or 1), p1, p2, p3, p4, p5, p6, s1, s2, s3)
        if broken and record then
          local last = redis.pcall('LINDEX', key, -1)
          lent = type(last) == 'string' and #last % 40 == 1 and byte(last) == 76
        end
        damaged = damaged or broken and not lent
        if lent then allowed, remaining, retry, marks = false, 0, NEVER, (marks or 0) + 64 end
        stuck = stuck or unable and cost > 0 and op == 0 and (not full or lacks[base] or record and not (spares and spares(x, y, z)))
        if ban and op == 0 and not left and not allowed and round == 1 and not (unable and (not full or lacks[ban])) then
          local life
          left, known[ban], known[ban + 1], known[ban + 2], life = ban_refused(now,
            first_ban, after, within, longest, known[ban], known[ban + 1], known[ban + 2])
          known[ban + 4] = now + life
          if left then marks = (marks or 0) + 16 end
        end
        if left then
          if allowed then _, quota, remaining, retry, next, reset = take(now, 0, p1, p2, p3, p4, p5, p6, s1, s2, s3) end
          if left == NEVER then
            retry, next = NEVER, 0
          else
            if retry ~= NEVER and retry < left then retry = left end
            if remaining > 0 or next < left then next = left end
            if reset < next then reset = next end
          end
          allowed, remaining, delay, marks = false, 0, 0, (marks or 0) + 8
        end
        if not allowed then
          pass = false
          local fits = room and floor(remaining / cost) or 0
          if fits < fit then fit = fits end
          if n > 1 and not record then before[base] = false end
          if times == 0 then quota = nil end -- it keeps the reply of the first round
        elseif times == 0 or op == 3 then
          allowed, quota, remaining, retry, next, reset, delay = take(now, 0, p1, p2, p3, p4, p5, p6, s1, s2, s3)
        elseif cost == 0 then
          if n > 1 and not record then before[base] = false end
        elseif stuck then
          if n > 1 and not record then before[base] = false end
        elseif n == 1 then
          write = true
          if record then
            if unlock then unlock = unlock(key) end
            record(key, cost, x, y, z, hold)
          end
        elseif record then
          charges = charges or {}
          charges[#charges + 1] = { record, key, cost, x, y, z, hold, reset }
        else
          write = true
          before[base], before[base + 1], before[base + 2], before[base + 4] = s1, s2, s3, known[base + 4]
        end
      end

      if write then
        if record then
          call('PEXPIRE', key, floor(reset / 1000) + MARGIN_MS)
          wrote = true
        else
          known[base], known[base + 1], known[base + 2], known[base + 4] = x, y, z, now + reset
        end
      end

      if quota then
        local flags = (allowed and 1 or 0) + (damaged and 2 or 0)
        if marks then flags = flags + marks end
        if room then
          if round == 1 then
            replies[answers + i] = pack('>i8i8i8I4', s1, s2, s3, 0)
            if damaged or lent then noticed = noticed .. pack('>H', (lent and 32768 or 0) + checks + i) end
          end
        elseif replies then
          local text = pack('>Bi8i8i8i8i8i8', flags, quota, remaining, retry, next, reset, delay)
          if override then text = text .. pack('>Hc0', #override, override) end
          replies[answers + i] = text
        elseif reply then
          reply = reply .. pack('>Bi8i8i8i8i8i8', flags, quota, remaining, retry, next, reset, delay)
        else
          reply = pack('>Bi8i8i8i8i8i8', flags, quota, remaining, retry, next, reset, delay)
        end
      end
    end
    if stuck and fit > 0 then
      uncharged = uncharged .. pack('>H', group)
      pass, fit = false, 0
    end
    if pass or n == 1 and not room then break end
    charges = nil
    times = round == 1 and fit or 0
    if times == 0 and room and n == 1 then break end
  end
  if room then refused = refused + copies - times end
  if replies then answers = answers + n end
  checks = checks + n
  if charges and times > 0 then
    wrote = true
    for _, c in ipairs(charges) do
      if unlock then unlock = unlock(c[2]) end
      c[1](c[2], c[3], c[4], c[5], c[6], c[7])
      call('PEXPIRE', c[2], floor(c[8] / 1000) + MARGIN_MS)
    end
  end
end

local span, text
for k = 1, #KEYS do
  local base = 5 * k - 4
  local x, y, z, lives, till = known[base], known[base + 1], known[base + 2], known[base + 3], known[base + 4]
  if till then
    local key = KEYS[k]
    if lives then
      if unlock then
        unlock = unlock(key)
        lives = 0
      end
      --[[write]]
    else
      if unlock then unlock = unlock(key) end
      call('SET', key, pack('>i8i8i8', x, y, z), 'EX', floor((till - now) / 1000000) + MARGIN_S)
    end
  end
end
return reply or replies and replies[answers] or '', replies, answers, noticed, refused, uncharged
end)(call, floor, byte, pack, unpack_struct, read, groups, mode, now, careful, unable, full, uncharged, lacks, unlock)
  if not refused then return last end -- an error
end

-- To make a long text twice would cost more.
local reply = last .. noticed .. (refused > 0 and ' ' .. refused .. ' ' or ' 0 ') .. time[1] .. ' ' .. time[2]
if all then
  all[n] = reply
  reply = table.concat(all, '', 1, n)
end
if careful then return uncharged .. pack('>HH', 0, unable and #unable or 0) .. (unable or '') .. reply end
return reply
