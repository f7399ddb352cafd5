-- take decides checks on the clock of this Redis.
--
-- KEYS     the keys of all states, each once.
-- ARGV[1]  a byte (1: read what are strings together; 2: see below), and the groups. A
--          group is a byte that says how many checks it has, a byte that says how many
--          requests ask just this, and the checks. A check is the place of its rule in
--          ARGV[1] (two bytes; 0: it follows), a byte that says what to do (0: decide,
--          1: renew what is held, 2: adjust a charge, 3: peek), the index of its key (two bytes,
--          from 1), the cost, and the name of what is held: a byte for the length, and
--          the name. To adjust, the name follows three integers: when the charge was
--          made, its turn, and what to add to it. A rule is the algorithm's name, a zero
--          byte, and six parameters. Of what there is to do, a 4 says that the key may have
--          a setting, and the index of that follows; an 8 that it may be banned, and there
--          follow the index of the ban's state and its four parameters.
--
-- The checks of a group are charged together or not at all. Groups are decided one after
-- the other at one time; a group that several requests share is decided as often. To
-- renew, to adjust and to peek are groups of one check. A peek is decided like a check,
-- charges nothing, and does not count towards a ban; if it would pass, its reply is that of
-- a cost of 0. The quota of a correction is 1 if it has
-- changed anything, or else 0.
--
-- The reply is one string: the time, then the groups. If one request asked: for each
-- check a byte of flags (1: allowed, 2: the stored state was damaged and counts as
-- none, 4: exempt, 8: banned, 16: from now on, 32: by a limit of its own), then quota,
-- remaining, retry (-1: never; if allowed, how far ahead of the time it is booked, for time
-- does not go back for a key), next, reset and delay, and behind a limit of its own what
-- stands of that in the setting, after its length in two bytes. If several asked: a byte
-- that says for how many of them there was room, and for each check the
-- flags and the state before; it is easy to say from these what each is told.
--
-- Numbers are big-endian integers of eight bytes; times and durations microseconds.
--
-- The twin of an algorithm sets functions. For a Counter, whose state this script keeps
-- as a string of three integers,
--   take(now, cost, p1, .., p6, s1, s2, s3) -> allowed, quota, remaining, retry, next,
--                                              reset, delay, s1, s2, s3
--   adjust(now, at, turn, delta, p1, .., p6, s1, s2, s3) -> s1, s2, s3 or nothing
-- for a Recorder or a Lender, which keep what they want under the key,
--   take(now, cost, p1, .., p6, key) -> allowed, .., delay, a, b, c, damaged
--   record(key, cost, a, b, c, hold)
--   adjust(key, now, at, turn, delta, p1, .., p6, hold) -> whether it changed anything
-- and, in a careful call, if there is a charge that takes no more memory than it sets free,
--   spares(a, b, c) -> whether this is one
-- P1 is how much fits. None of them expires keys; this script does. A twin may set adjust
-- only where op is 2.
--
-- Calls of several keys that are all to be decided by Counters, each once and with nothing
-- beside them, have a form of their own, and shorter replies: see counters.lua.
--
-- If Redis refuses a call's first write, the call fails, and nothing was written. The caller
-- then sends it again with 4 added to the first byte. Such a call finds out first whether
-- Redis can write. If it cannot, all that needs no write is decided: refusals and peeks. If
-- the reason is memory, so are charges that need no more memory than their keys have. The
-- reply begins with the numbers of the groups that would have been charged and were not (two
-- bytes each, from 1), a zero of two bytes, and why Redis cannot write: two bytes for the
-- length, and the text. The rest is as usual, as if such a group had been charged or not.
--
-- All of this runs anew for each call, and making a function or a table is not free. So
-- there are few of them, and a call with one key, which most are when there is little to
-- do, needs but the twin's.

local call, floor, byte, pack, unpack_struct = redis.call, math.floor, string.byte, struct.pack, struct.unpack
local groups = ARGV[1]
local mode = byte(groups)

-- If the call is careful: why Redis cannot write, whether for want of memory, the groups that
-- were not charged for that reason, and which states take memory that they do not have yet.
local careful, unable, full, uncharged, lacks, unlock = mode > 3
if careful then
  mode, uncharged, lacks = mode - 4, '', {}
  -- This writes nothing in any case, but Redis judges it like a write that may take memory.
  local done = redis.pcall('SET', KEYS[1], '', redis.pcall('GET', KEYS[1]) and 'NX' or 'XX')
  unable = type(done) == 'table' and done.err and string.sub(done.err, 1, 300)
  full = unable and string.find(unable, 'OOM command', 1, true)
  if full then
    -- Redis refuses only the first write, so the first one is this, to a key that lives on
    -- by the write that follows.
    unlock = function(key)
      call('PEXPIRE', key, MARGIN_MS)
      unlock = nil
    end
  end
end

local now
do
  local time = --[[clock]] redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

local function twin(name, op)
  local take, record, adjust, spares
  --[[algorithms]]
  return take, record, adjust, spares
end

-- To write a number as text is slow, so where there are several, times to live are rounded
-- up, by a quarter at the most, to some that many keys have.
local many = #KEYS > 1
local lifetime
if many then
  local texts = {}
  lifetime = function(reset)
    local s = floor(reset / 1000000) + MARGIN_S
    if s > 1024 then s = s + 256 - s % 256 elseif s > 64 then s = s + 16 - s % 16 end
    local text = texts[s]
    if not text then
      text = tostring(s)
      texts[s] = text
    end
    return text
  end
end

--[[counters]]

-- With several keys the states of Counters are read once and written once, at the end.
-- Of key k, known[4k-3] to known[4k-1] is the state, and known[4k] its time to live in
-- microseconds once it must be written; before has what a group has changed, until it is
-- clear that all of it passes. Tables grow slowly, so these begin with some room.
local reply, replies, values, known, before
if many then
  replies = { pack('>i8', now), false, false, false }
  known = { false, false, false, false, false, false, false, false, false, false, false, false }
  before = { false, false, false, false, false, false, false, false, false, false, false, false }
  if mode == 1 then values = call('MGET', unpack(KEYS)) end
end
local answers = 1 -- how many replies there are

-- The rule and the twin used last, and the twins used before.
local place, p1, p2, p3, p4, p5, p6
local name, take, record, adjust, spares, twins
local ban_left, ban_refused
local wrote -- something, before the end

local at, group = 2, 0
while at <= #groups do
  local n, copies = byte(groups, at, at + 1)
  local first = at + 2
  -- For how many requests the checks are asked, for how many there is room, and where
  -- in the replies that stands.
  local times, fit, room = copies, copies, nil
  if copies > 1 then
    replies, reply = replies or { reply or pack('>i8', now) }, nil
    answers = answers + 1
    room = answers
  end
  local charges -- of Recorders and Lenders in groups of several checks
  local stuck   -- a charge cannot be written
  group = group + 1

  -- If not all fits, the checks are asked once more: for those requests that fit. If
  -- there was only one, what passed is asked as a peek, for what would have passed but
  -- for others is not charged, and its reply must not say so.
  local pass
  for round = 1, 2 do
    pass, at = true, first
    for i = 1, n do
      local offset, op, k, cost, hold
      offset, op, k, cost, hold, at = unpack_struct('>HBHi8Bc0', groups, at)
      local looks = op
      if op > 3 then op = op % 4 end

      if offset ~= place or op == 2 and not adjust then
        local wanted, after
        place = offset > 0 and offset or at
        wanted, p1, p2, p3, p4, p5, p6, after = unpack_struct('>si8i8i8i8i8i8', groups, place)
        if offset == 0 then at = after end
        if wanted ~= name or op == 2 and not adjust then
          if name then
            twins = twins or {}
            twins[name] = { take, record, adjust, spares }
          end
          name = wanted
          local made = twins and twins[wanted]
          if made and (op ~= 2 or made[3]) then
            take, record, adjust, spares = made[1], made[2], made[3], made[4]
          else
            take, record, adjust, spares = twin(name, op)
          end
        end
      end

      -- What stands above the limit, if anything does: an exemption, a limit of the key's own, how
      -- long it is banned still (-1: for ever), and its ban. Above is what of it is told.
      local exempt, left, above, own, ban, first_ban, after, within, longest, damaged
      if looks > 3 then
        local j
        if looks % 8 > 3 then
          j, at = unpack_struct('>H', groups, at)
          if values[j] then
            local read, kind, till, more = pcall(unpack_struct, '>Bi8', values[j])
            if not read then
              damaged = true
            elseif till == 0 or till > now then
              if kind == 1 then
                exempt = true
              elseif kind == 2 then
                left = till == 0 and NEVER or till - now
              else
                --[[own]]
              end
            end
          end
        end
        if looks > 7 then
          if not ban_left then
            --[[ban]]
          end
          j, first_ban, after, within, longest, at = unpack_struct('>Hi8i8i8i8', groups, at)
          ban = 4 * j - 3
          if not known[ban] then
            known[ban], known[ban + 1], known[ban + 2], known[ban + 3] = 0, 0, 0, false
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

      local key, base = KEYS[k], 4 * k - 3
      local s1, s2, s3 = key
      if not record then
        if round == 2 and n > 1 and before[base] then
          known[base], known[base + 1], known[base + 2], known[base + 3] = before[base], before[base + 1], before[base + 2], before[base + 3]
        end
        if many and known[base] then
          s1, s2, s3 = known[base], known[base + 1], known[base + 2]
        else
          local value = values and values[k] or redis.pcall('GET', key)
          if not value then
            s1, s2, s3 = 0, 0, 0
          elseif type(value) == 'string' and #value == 24 then
            s1, s2, s3 = unpack_struct('>i8i8i8', value)
          else
            s1, s2, s3, damaged = 0, 0, 0, true
          end
          if unable then lacks[base] = not value or damaged end
          if many then known[base], known[base + 1], known[base + 2], known[base + 3] = s1, s2, s3, false end
        end
      end

      local allowed, quota, remaining, retry, next, reset, delay = true, 0, 0, 0, 0, 0, 0
      local write, x, y, z, broken, _
      if op == 2 then
        local made, turn, delta, from = unpack_struct('>i8i8i8', hold)
        if not adjust then
          write = nil -- what was charged stays charged
        elseif record then
          x = key
          stuck = unable and (not full or delta > 0)
          write = not stuck and adjust(key, now, made, turn, delta, p1, p2, p3, p4, p5, p6, string.sub(hold, from))
        else
          x, y, z = adjust(now, made, turn, delta, p1, p2, p3, p4, p5, p6, s1, s2, s3)
          stuck = x and unable and (not full or lacks[base])
          write = x and not stuck
        end
        -- Of a limit of nothing at all nothing would come back, but what is kept stays.
        quota = write and 1 or 0
        if write then _, _, _, _, _, reset = take(now, 0, record and MAX_EXACT or p1, p2, p3, p4, p5, p6, x, y, z) end
      elseif op == 1 then
        allowed, quota, remaining, retry, next, reset, delay, x, y, z, damaged = take(now, 0, MAX_EXACT, p2, p3, p4, p5, p6, key)
        if reset < y then reset = y end
        stuck = unable and not full -- what is held has its place
        if not stuck then
          if unlock then unlock(key) end
          record(key, cost, x, y, z, hold)
          write = true
        end
      elseif exempt then
        above = 4
        if n > 1 and not record then before[base] = false end
        if times == 0 then quota = nil end
      else
        allowed, quota, remaining, retry, next, reset, delay, x, y, z, broken =
          take(now, cost * (times > 0 and times or 1), p1, p2, p3, p4, p5, p6, s1, s2, s3)
        damaged = damaged or broken
        stuck = stuck or unable and cost > 0 and op == 0 and (not full or lacks[base] or record and not (spares and spares(x, y, z)))
        if ban and op == 0 and not left and not allowed and round == 1 and not (unable and (not full or lacks[ban])) then
          left, known[ban], known[ban + 1], known[ban + 2], known[ban + 3] = ban_refused(now,
            first_ban, after, within, longest, known[ban], known[ban + 1], known[ban + 2])
          if left then above = (above or 0) + 16 end
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
          allowed, remaining, delay, above = false, 0, 0, (above or 0) + 8
        end
        if not allowed then
          pass = false
          local fits = room and floor(remaining / cost) or 0
          if fits < fit then fit = fits end
          if n > 1 and not record then before[base] = false end
          if times == 0 then quota = nil end -- its reply stands
        elseif times == 0 or op == 3 then
          allowed, quota, remaining, retry, next, reset, delay = take(now, 0, p1, p2, p3, p4, p5, p6, s1, s2, s3)
        elseif cost == 0 then
          if n > 1 and not record then before[base] = false end
        elseif stuck then
          if n > 1 and not record then before[base] = false end
        elseif n == 1 then
          write = true
          if record then
            if unlock then unlock(key) end
            record(key, cost, x, y, z, hold)
          end
        elseif record then
          charges = charges or {}
          charges[#charges + 1] = { record, key, cost, x, y, z, hold, reset }
        else
          write = true
          before[base], before[base + 1], before[base + 2], before[base + 3] = s1, s2, s3, known[base + 3]
        end
      end

      if write then
        if record then
          call('PEXPIRE', key, floor(reset / 1000) + MARGIN_MS)
          wrote = true
        elseif many then
          known[base], known[base + 1], known[base + 2], known[base + 3] = x, y, z, reset
        else
          if unlock then unlock(key) end
          call('SET', key, pack('>i8i8i8', x, y, z), 'EX', floor(reset / 1000000) + MARGIN_S)
        end
      end

      if quota then
        local flags = (allowed and 1 or 0) + (damaged and 2 or 0)
        if above then flags = flags + above end
        if room then
          if round == 1 then replies[answers + i] = pack('>Bi8i8i8', flags, s1, s2, s3) end
        elseif replies then
          local text = pack('>Bi8i8i8i8i8i8', flags, quota, remaining, retry, next, reset, delay)
          if own then text = text .. pack('>Hc0', #own, own) end
          replies[answers + i] = text
        elseif reply then
          reply = reply .. pack('>Bi8i8i8i8i8i8', flags, quota, remaining, retry, next, reset, delay)
        else
          reply = pack('>i8Bi8i8i8i8i8i8', now, flags, quota, remaining, retry, next, reset, delay)
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
  if room then replies[room] = string.char(times) end
  if replies then answers = answers + n end
  if charges and times > 0 then
    wrote = true
    for _, c in ipairs(charges) do
      if unlock then unlock(c[2]) end
      c[1](c[2], c[3], c[4], c[5], c[6], c[7])
      call('PEXPIRE', c[2], floor(c[8] / 1000) + MARGIN_MS)
    end
  end
end

if many then
  for k = 1, #KEYS do
    local base = 4 * k - 3
    if known[base + 3] then
      if unlock then unlock(KEYS[k]) end
      call('SET', KEYS[k], pack('>i8i8i8', known[base], known[base + 1], known[base + 2]), 'EX', lifetime(known[base + 3]))
    end
  end
end
reply = reply or replies and table.concat(replies, '', 1, answers) or ''
if careful then return uncharged .. pack('>HH', 0, unable and #unable or 0) .. (unable or '') .. reply end
return reply
