-- lend.lua decides checks of zones that lend, and lends. It is the Lua port of package
-- algorithms/lend, which says what the numbers mean, around the ports of the algorithms.
--
-- KEYS     for each check, the key of its state, and those of its override and of its ban, if it may have one. While parts of it are lent, the state has a book
--          of the loans at its end: 40 bytes for all of them, and 40 bytes for each. The state of a
--          Counter is a string: that of take.lua, and the book behind it. The state of a Recorder is
--          a list, and its last element is the letter L and the book. So take.lua notices that parts
--          are lent when it finds a state that it cannot read: then it decides nothing.
-- ARGV[1]  groups: a byte for the number of their checks, and the checks, each of them
--   a byte         what to do: 0 ask, 1 adjust a charge, 2 peek; plus 4 if the borrower was refused
--                  the last time, plus 8 if the cost is lent instead of charged, plus 16 if the key may
--                  have an override, plus 32 if it may be banned: then nothing is lent, and these decide, plus
--                  64 if its request does not ask again: see flag 128 of the reply
--   a number       the cost
--   seven numbers  the borrower, and the number, spent, live, want, lease and brief of its ask, which are 0
--                  if nothing is borrowed; to adjust, when the charge was made, its turn and the delta
--   the rule       the algorithm's name and six parameters, as MessagePack has them, and then the four
--                  of the ban, if the key may be banned
--
-- ARGV[2]  in a careful call only; take.lua says what that is. While Redis cannot write, nothing more is
--          lent. If the reason is memory, groups are charged that need no more than their keys have.
--
-- The costs of a group are charged together or not at all. The groups are decided one after the
-- other. The reply is one string: the time, in a careful call why Redis cannot write (two bytes for the
-- length, and the text), and for each group a byte. If that is 1, what follows is why the group failed:
-- two bytes for the length, and the text. If it is 3, Redis cannot write what the group charges, and
-- nothing follows. If it is 2, nothing was written, and if it is 0, everything: then for each check
--   a byte         flags: 1 allowed, 2 what was stored was damaged and ignored, 4 exempt, 8 banned,
--                  16 the ban begins, 32 decided by the limit of an override, 128 refused only because
--                  of what its borrower holds, which a ban does not count, as it may ask again
--   eleven numbers quota, remaining, retry, next, reset, held, lease, others, pause, what is lent in
--                  all, and to how many. An adjustment answers otherwise: quota is 1 if it has changed anything, and remaining
--                  is 1 if something is free after a charge
--   with flag 32   two bytes for the length, and the limit of the override, as take.lua has it
-- Numbers are big-endian integers of eight bytes, times and durations are in microseconds.
--
-- A loan is the borrower, the number and spent of its last ask, what it holds, and when it ends. So
-- that no call reads all loans, the book begins with five numbers: two that are 0, a time before
-- which none of the loans ends, a time after which none does, and what is lent in all.

local call, floor, pack, unpack_struct = redis.call, math.floor, struct.pack, struct.unpack
local find, sub = string.find, string.sub
local now
do
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

--[[include wrongtype.lua]]

-- In a careful call: why Redis cannot write, and whether the reason is memory. Then a group is dry at first:
-- nothing is written, and a book stays at the end of its list, out of sight of the ports.
local careful, unable, full, unlock, dry = ARGV[2]
if careful then
  --[[include careful.lua]]
end
local booked = {}

-- aside returns a function that reads a list as it is without its book.
local function aside(read)
  return function(command, key, ...)
    if booked[key] and command == 'LLEN' then return read(command, key) - 1 end
    if booked[key] and command == 'LINDEX' and (...) == -1 then return read(command, key, -2) end
    return read(command, key, ...)
  end
end

local function port(name, op)
  local take, record, adjust, spares, careful
  local call, redis = call, redis
  if dry then call, redis = aside(call), { pcall = aside(redis.pcall) } end
  --[[include ports.lua]]
  return take, record, adjust
end

-- charged charges a cost to the state of a Counter, whether it fits or not. It returns the state, and
-- until when that is worth something.
local function charged(name, now, cost, p2, p3, p4, p5, p6, s1, s2, s3)
  local p1 = MAX_EXACT
  local ok, room, till, x, y, z
  --[[include charge.lua]]
  return x, y, z, till
end

-- decide decides whether a cost fits if so much more was charged. If nothing was, it returns the state
-- of a Counter after the charge, too.
local function decide(c, cost, more)
  local take, p1, p2, p3, p4, p5, p6 = c.take, c.p1, c.p2, c.p3, c.p4, c.p5, c.p6
  if not c.record then
    local x, y, z = c.x, c.y, c.z
    if more > 0 then x, y, z = charged(c.name, now, more, p2, p3, p4, p5, p6, x, y, z) end
    local allowed, quota, remaining, retry, next, reset, _
    allowed, quota, remaining, retry, next, reset, _, x, y, z = take(now, cost, p1, p2, p3, p4, p5, p6, x, y, z)
    if more == 0 and allowed then return allowed, quota, remaining, retry, next, reset, x, y, z end
    return allowed, quota, remaining, retry, next, reset
  end
  -- What is charged more would be the newest events of the log.
  more = more + c.owed
  local fits = p1 > more and p1 - more or 0
  local allowed, _, remaining, retry, next, reset, _, _, t, _, _, moved = take(now, cost, fits, p2, p3, p4, p5, p6, c.key)
  if more > 0 then
    reset = t + p2 - moved
    if next == 0 then next = reset end
    if retry == NEVER and cost <= p1 then retry = reset end
    if p1 == 0 then next, reset = 0, 0 end
  end
  return allowed, p1, remaining, retry, next, reset
end

-- expired returns how many charges of a log have left the window, and what else its record wants to know.
local function expired(c, at)
  local _, _, _, _, _, _, _, a, b, d = c.take(at, 0, MAX_EXACT, c.p2, c.p3, c.p4, c.p5, c.p6, c.key)
  return a, b, d
end

-- unlocked has a full Redis write what takes no more memory: all of the state.
local function unlocked(c)
  if unlock then
    unlock(c.key)
    c.whole = true
  end
end

-- charge charges a cost, whether it fits or not.
local function charge(c, at, cost)
  if cost <= 0 then return end
  c.changed = true
  if c.record and dry then
    c.owed, c.entries = c.owed + cost, c.entries + 1
  elseif c.record then
    local a, b, d = expired(c, at)
    unlocked(c)
    c.record(c.key, cost, a, b, d)
  else
    c.x, c.y, c.z = charged(c.name, at, cost, c.p2, c.p3, c.p4, c.p5, c.p6, c.x, c.y, c.z)
  end
end

--[[include loans.lua]]

--[[include overruled.lua]]

-- write keeps what has changed, for as long as it counts. See write.lua for expiries.
local function write(c)
  local latest, about = now, ''
  if c.loans > 0 then
    if c.last > now then latest = c.last end
    about = pack('>i8i8i8i8i8', 0, 0, c.first, c.last, c.lent)
  else
    c.whole = true
  end
  if c.record then
    local _, _, _, _, _, reset = c.take(latest, c.lent, MAX_EXACT, c.p2, c.p3, c.p4, c.p5, c.p6, c.key)
    if c.loan then replace(c, c.place, c.loan) end
    c.taken = nil
    if c.loans > 0 then
      if call('LLEN', c.key) == 0 then call('RPUSH', c.key, EXPIRED) end -- it must not become empty when the book is taken
      call('RPUSH', c.key, 'L' .. about .. c.book)
    end
    call('PEXPIRE', c.key, floor((latest - now + reset) / 1000) + MARGIN_MS)
    return
  end
  unlocked(c)
  local _, _, _, till = charged(c.name, latest, c.lent, c.p2, c.p3, c.p4, c.p5, c.p6, c.x, c.y, c.z)
  local need = (till > latest and till or latest) / 1000000 + MARGIN
  if c.lives >= need and not c.whole then
    call('SETRANGE', c.key, '0', pack('>i8i8i8i8I4', c.x, c.y, c.z, c.born, c.lives) .. about)
    if c.loan then call('SETRANGE', c.key, 75 + c.place, c.loan) end
    return
  end
  if c.loan then replace(c, c.place, c.loan) end
  local seconds = floor(now / 1000000)
  local life = floor(need) + 1 - seconds
  life = life + (life < 172800 and floor(life / 2) or 86400) + 16
  local lives = seconds + life < 4294967296 and seconds + life or 0
  call('SET', c.key, pack('>i8i8i8i8I4', c.x, c.y, c.z, c.born, lives) .. about .. c.book, 'EX', life)
end

-- grows reports whether a check needs more memory than its key has.
local function grows(c)
  local room = #c.book
  if c.loan and c.place > room then room = room + 40 end
  if c.record then return room > #c.book or c.entries > 0 and c.entries > expired(c, now) end
  return c.changed and 36 + (c.loans > 0 and 40 + room or 0) > c.size
end

-- decided returns the replies to the checks of a group.
local function decided(checks, pass)
  local replies = {}
  for i = 1, #checks do
    local c = checks[i]
    if c.op ~= 1 then
      if c.exempt then
        c.allowed = true
      elseif pass and c.op == 0 then
        if c.borrows then -- it is lent
        elseif c.s1 and c.cost > 0 then
          c.x, c.y, c.z, c.changed = c.s1, c.s2, c.s3, true
        else
          charge(c, now, c.cost)
        end
      elseif c.allowed then
        c.allowed, c.quota, c.remaining, c.retry, c.next, c.reset = decide(c, 0, c.counts)
      end
      if c.op == 0 then
        local here = c.here or c
        lend(here, pass)
        c.held, c.length, c.others = here.held, here.length, here.others
        if c.held == 0 and c.want > 0 then c.pause = pause(c) end
      end
    end
    if not dry then
      if c.here and (c.here.changed or c.here.taken) then write(c.here) end
      if c.changed or c.taken then write(c) end
      if c.life then remember(c) end
    end
    local flags = (c.allowed and 1 or 0) + (c.damaged and 2 or 0) + (c.own and 128 or 0)
    if c.setting or c.ban then
      flags = flags + (c.exempt and 4 or c.left and 8 or 0) + (c.begins and 16 or 0) + (c.override and 32 or 0)
    end
    replies[i] = pack('>Bi8i8i8i8i8i8i8i8i8i8i8', flags, c.quota, c.remaining,
      c.retry, c.next, c.reset, c.held, c.length, c.others, c.pause, c.lent, c.loans)
    if c.override then replies[i] = replies[i] .. pack('>Hc0', #c.override, c.override) end
  end
  return table.concat(replies)
end

-- group decides the checks of a group, and returns the replies.
local function group(checks)
  local pass = true
  for i = 1, #checks do
    local c = checks[i]
    open(c)
    if c.op == 1 then
      expire(c)
      local made, turn, delta = c.number, c.spent, c.live
      if c.record then
        -- What was spent was charged later, when it was reported.
        if dry then
          c.done, c.entries = true, delta > 0 and MAX_EXACT or c.entries -- a late cost needs memory
        else
          c.done = c.adjust(c.key, now, made, -1, delta, c.p1, c.p2, c.p3, c.p4, c.p5, c.p6)
        end
      else
        local x, y, z = c.adjust(now, made, turn, delta, c.p1, c.p2, c.p3, c.p4, c.p5, c.p6, c.x, c.y, c.z)
        if x then c.done, c.x, c.y, c.z = true, x, y, z end
      end
      if not c.done and not unable then nothing(call, c.key) end -- see adjust.lua
      c.changed = c.changed or c.done
      c.allowed, c.quota, c.remaining, c.retry, c.next, c.reset = true, c.done and 1 or 0, 0, 0, 0, 0
      if c.done and delta > 0 then
        local _, _, remaining = decide(c, 0, c.lent)
        if remaining > 0 then c.remaining = 1 end
      end
    else
      if c.op == 0 then report(c) else expire(c) c.live = 0 end
      if unable then -- nothing more is lent
        c.want = 0
        c.borrows = c.borrows and c.place
      end
      if c.setting or c.ban then
        local again = overrule(c)
        if again then error(again) end
        if c.other then
          c = elsewhere(c)
          checks[i] = c
        end
      end
      if not c.exempt then
        c.counts = c.lent + c.live
        c.allowed, c.quota, c.remaining, c.retry, c.next, c.reset, c.s1, c.s2, c.s3 = decide(c, c.cost, c.counts)
        c.own = c.op == 0 and not c.allowed and not c.left and not c.override and own(c)
        if c.ban and c.op == 0 and not c.left and not c.allowed and (c.final or not c.own) and not dry and not (unable and not c.known) then count(c) end
        if c.left then banned(c) end
        pass = pass and c.allowed
      end
    end
  end
  return decided(checks, pass), pass
end

-- tried returns the reply for a group if Redis cannot write what it charges, or nil if it can.
local function tried(checks)
  local reply, pass = group(checks)
  local charges, writes = false, full
  for i = 1, #checks do
    local c = checks[i]
    charges = charges or c.op == 1 or pass and c.op == 0 and c.cost > 0
    writes = writes and not grows(c) and not (c.here and grows(c.here))
  end
  if not writes then return charges and '\3' or '\2' .. reply end
end

-- failed returns the reply for a group that failed, and puts the books back that it has taken. If the group
-- is alone, or Redis refuses to write, it returns an error of the call instead, of which nothing is written
-- then. An error that is raised keeps its kind in some versions of Redis only, so it is returned, with a mark
-- that a script has met it.
local function failed(checks, why)
  for i = 1, #checks do
    local c = checks[i]
    for _, c in ipairs(c.here and { c, c.here } or { c }) do
      if c.taken and redis.pcall('RPUSH', c.key, c.taken) == 1 then
        redis.pcall('PEXPIRE', c.key, floor((c.p2 + MAX_LEASE) / 1000))
      end
    end
  end
  local text = type(why) == 'table' and why.err or tostring(why)
  text = string.match(text, '^@user_script: %d+: %-(.*)') or text -- Redis 6
  local word = string.match(text, '^%u+ ')
  if #ARGV[1] == checks.length or word and find(' READONLY OOM MISCONF NOREPLICAS ', ' ' .. word, 1, true) then
    return redis.error_reply((word and '' or 'ERR ') .. text .. ' script: lend.lua')
  end
  return pack('>BHc0', 1, #text, text)
end

local reply, groups, ports = { pack('>i8', now) }, ARGV[1], {}
if careful then reply[1] = reply[1] .. pack('>H', unable and #unable or 0) .. (unable or '') end

-- read returns the checks of a group that begins at a place, how many keys there are up to its last one, and
-- where the next group begins.
local function read(at, k)
  local checks, first = {}, at
  local n = string.byte(groups, at)
  at = at + 1
  for j = 1, n do
    k = k + 1
    -- A table grows slowly, so all of its fields are there from the beginning.
    local c = {
      key = KEYS[k], name = false, take = false, record = false, adjust = false, p1 = 0, p2 = 0, p3 = 0, p4 = 0, p5 = 0, p6 = 0,
      op = 0, cost = 0, id = false, number = 0, spent = 0, live = 0, want = 0, lease = 0, brief = 0, scarce = false, borrows = false,
      x = 0, y = 0, z = 0, born = now, lives = 0, s1 = false, s2 = false, s3 = false, book = '', loans = 0, lent = 0, first = 0, last = 0, counts = 0,
      place = false, loan = false, whole = false, size = 0, owed = 0, entries = 0,
      taken = false, changed = false, damaged = false, done = false, index = k, setting = false, ban = false, final = false, own = false,
      allowed = false, quota = 0, remaining = 0, retry = 0, next = 0, reset = 0, held = 0, length = 0, others = 0, pause = 0,
    }
    c.op, c.cost, c.id, c.number, c.spent, c.live, c.want, c.lease, c.brief, at = unpack_struct('>Bi8c8i8i8i8i8i8i8', groups, at)
    if c.op >= 64 then c.op, c.final = c.op - 64, true end
    local bans = c.op >= 32
    if bans then c.op, c.till, c.since, c.count = c.op - 32, 0, 0, 0 end
    at, c.name, c.p1, c.p2, c.p3, c.p4, c.p5, c.p6, c.first_ban, c.after, c.within, c.longest =
      cmsgpack.unpack_limit(groups, bans and 11 or 7, at - 1)
    at = at < 0 and #groups + 1 or at + 1
    if c.op >= 16 then
      k = k + 1
      c.op, c.setting = c.op - 16, KEYS[k]
    end
    if bans then
      k = k + 1
      c.ban = KEYS[k]
    end
    checks[j] = c
    local name = c.name
    if c.op >= 8 then c.op, c.borrows = c.op - 8, true end
    if c.op >= 4 then c.op, c.scarce = c.op - 4, true end
    local made = c.op ~= 1 and not dry and ports[name] or { port(name, c.op == 1 and 2 or 0) }
    if c.op ~= 1 and not dry then ports[name] = made end
    c.take, c.record, c.adjust = made[1], made[2], made[3]
  end
  checks.length = at - first
  return checks, k, at
end

local at, k = 1, 0
while at <= #groups do
  local checks, keys, behind, done, text
  if unable then
    dry, booked = true, {}
    checks, keys, behind = read(at, k)
    done, text = pcall(tried, checks)
    if not done then text = failed(checks, text) end
    dry, booked = false, {}
  end
  if not text then
    checks, keys, behind = read(at, k)
    done, text = pcall(group, checks)
    text = done and '\0' .. text or failed(checks, text)
  end
  if type(text) == 'table' then return text end -- an error of the call
  reply[#reply + 1], at, k = text, behind, keys
end
return table.concat(reply)
