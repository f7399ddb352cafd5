-- lend.lua decides checks of zones that lend, and lends. It is the Lua port of package
-- algorithms/lend, which says what the numbers mean, around the ports of the algorithms.
--
-- KEYS     for each check, the key of its state. While parts of it are lent, the state has a book
--          of the loans at its end: 40 bytes for all of them, and 40 bytes for each. The state of a
--          Counter is a string: that of take.lua, and the book behind it. The state of a Recorder is
--          a list, and its last element is the letter L and the book. So take.lua notices that parts
--          are lent when it finds a state that it cannot read: then it decides nothing.
-- ARGV[1]  groups: a byte for the number of their checks, and the checks, each of them
--   a byte         what to do: 0 ask, 1 adjust a charge, 2 peek; plus 4 if the borrower was refused
--                  the last time, plus 8 if the cost is lent instead of charged
--   a number       the cost
--   seven numbers  the borrower, and the number, spent, live, want, lease and brief of its ask, all 0
--                  if nothing is borrowed; to adjust, when the charge was made, its turn and the delta
--   the rule       the algorithm's name and six parameters, as MessagePack has them
--
-- The costs of a group are charged together or not at all. The groups are decided one after the
-- other. The reply is one string: the time, and for each group a byte. If that is 1, what follows
-- is why the group failed: two bytes for the length, and the text. If it is 0, for each check
--   a byte         flags: 1 allowed, 2 what was stored was damaged and ignored
--   eleven numbers quota, remaining, retry, next, reset, held, lease, others, pause, what is lent in
--                  all, and to how many. Of an adjustment, quota is 1 if it has changed anything, and remaining
--                  is 1 if something is free after a charge
-- Numbers are big-endian integers of eight bytes, times and durations are in microseconds. See
-- take.lua for the functions that ports have.
--
-- A loan is the borrower, the number and spent of its last ask, what it holds, and when it ends. So
-- that no call reads all loans, the book begins with five numbers: two that are 0, a time before
-- which none of the loans ends, a time after which none does, and what is lent in all.

local call, floor, pack, unpack_struct = redis.call, math.floor, struct.pack, struct.unpack
local find, sub = string.find, string.sub
local now
do
  local time = --[[clock]] redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

local function port(name, op)
  local take, record, adjust, spares, careful
  --[[algorithms]]
  return take, record, adjust
end

-- charged charges a cost to the state of a Counter, whether it fits or not. It returns the state, and
-- until when that is worth something.
local function charged(name, now, cost, p2, p3, p4, p5, p6, s1, s2, s3)
  local p1 = MAX_EXACT
  local ok, room, till, x, y, z
  --[[charge]]
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
  local fits = p1 > more and p1 - more or 0
  local allowed, _, remaining, retry, next, reset, _, _, t = take(now, cost, fits, p2, p3, p4, p5, p6, c.key)
  if more > 0 then
    if next == 0 then next = t + p2 - now end
    reset = t + p2 - now
    if retry == NEVER and cost <= p1 then retry = t + p2 - now end
    if p1 == 0 then next, reset = 0, 0 end
  end
  return allowed, p1, remaining, retry, next, reset
end

-- charge charges a cost, whether it fits or not.
local function charge(c, at, cost)
  if cost <= 0 then return end
  c.changed = true
  if c.record then
    local _, _, _, _, _, _, _, a, b, d = c.take(at, 0, MAX_EXACT, c.p2, c.p3, c.p4, c.p5, c.p6, c.key)
    c.record(c.key, cost, a, b, d)
  else
    c.x, c.y, c.z = charged(c.name, at, cost, c.p2, c.p3, c.p4, c.p5, c.p6, c.x, c.y, c.z)
  end
end

-- damaged forgets loans that make no sense.
local function damaged(c)
  c.damaged, c.whole, c.book, c.loans, c.lent, c.place = true, true, '', 0, 0, false
end

-- open reads the state, and takes the book off it.
local function open(c)
  local value, at
  if c.record then value, at = redis.pcall('LINDEX', c.key, -1), 2 else value, at = redis.pcall('GET', c.key), 29 end
  if c.record then
    if type(value) ~= 'string' or #value % 40 ~= 1 or #value > 1 + 65 * 40 or string.byte(value) ~= 76 then return end
    call('LTRIM', c.key, 0, -2)
    c.taken = value
  elseif not value then
    return
  elseif type(value) ~= 'string' or #value % 40 ~= 28 or #value > 28 + 65 * 40 then
    c.damaged = true
    return
  else
    c.x, c.y, c.z, c.lives = unpack_struct('>i8i8i8I4', value)
  end
  if #value < at then return end
  local one, two, first, last, lent = unpack_struct('>i8i8i8i8i8', value, at)
  if one ~= 0 or two ~= 0 or first < 0 or last < first or last >= MAX_EXACT or lent < 0 or lent > 64 * 1000000000000 then
    return damaged(c)
  end
  c.first, c.last, c.lent, c.book, c.loans = first, last, lent, sub(value, at + 40), (#value - at - 39) / 40
end

-- loan returns the numbers of the loan at a place in the book: of its borrower's last ask, what was
-- spent by then, what it holds, and when it ends. It returns nothing if the loan is damaged.
local function loan(c, at)
  local number, spent, held, ends = unpack_struct('>i8i8i8i8', c.book, at + 8)
  if number < 0 or number >= MAX_EXACT or spent < 0 or spent >= MAX_EXACT or held < 0 or held > 1000000000000 or
    ends < 0 or ends >= MAX_EXACT then
    return damaged(c)
  end
  return number, spent, held, ends
end

-- replace puts another text, or none, where a loan is in the book.
local function replace(c, at, text)
  c.book, c.whole = sub(c.book, 1, at - 1) .. text .. sub(c.book, at + 40), true
end

-- settle ends the loans that are over, in the order of their ends. None ends before c.first.
local function settle(c)
  while c.loans > 0 and (c.first <= now or c.last > now + MAX_LEASE) do
    local over, most, first, last, lent = nil, nil, MAX_EXACT - 1, 0, 0
    for at = 1, #c.book, 40 do
      local number, _, held, ends = loan(c, at)
      if not number then return end
      if ends > now + MAX_LEASE then
        ends = now + MAX_LEASE
        replace(c, at, sub(c.book, at, at + 31) .. pack('>i8', ends))
      end
      if ends < first then over, most, first = at, held, ends end
      if ends > last then last = ends end
      lent = lent + held
    end
    c.first, c.last, c.lent, c.changed = first, last, lent, true
    if first <= now then
      charge(c, (first > 1 and first or 1) - 1, most)
      replace(c, over, '')
      c.loans, c.lent = c.loans - 1, lent - most
    end
  end
end

-- report charges what a borrower has spent, and ends its loan, but leaves it in the book.
local function report(c)
  settle(c)
  if c.number > 0 then
    local at = find(c.book, c.id, 1, true)
    while at and at % 40 ~= 1 do at = find(c.book, c.id, at + 1, true) end
    local number, spent, held, ends
    if at then number, spent, held, ends = loan(c, at) end
    if number then
      if number >= c.number then
        c.number = 0
      else
        charge(c, now, c.spent - spent)
        if c.live > 0 and c.lease < ends - now then c.lease = ends - now end
        if c.live > 0 and c.brief > 0 and c.brief < ends - now then c.brief = ends - now end
        c.place, c.loans, c.lent, c.changed = at, c.loans - 1, c.lent - held, true
      end
    elseif c.loans >= 64 then
      charge(c, now, c.live)
      c.number = 0
    end
  end
  if c.number == 0 then c.live, c.want, c.borrows = 0, 0, false end
end

-- lend lends what the borrower wants, or less. The new loan has the place of the one that was renewed.
local function lend(c, pass)
  local lenders = c.loans + 1
  c.others = c.lent
  local need = c.live
  if c.borrows and pass then need = need + c.cost end
  local parts = 2 * lenders
  if c.scarce then parts = lenders > 2 and lenders or 2 end
  local held = floor((c.remaining + need) / parts)
  if held > c.want then held = c.want end
  local lease = c.lease
  if c.brief > 0 and c.brief < lease then
    local part = floor((c.remaining + need) / (16 * lenders))
    if part < 2 or lenders > 32 then lease = c.brief elseif held > part then held = part end
  end
  if held < 2 or not c.allowed then held = 0 end
  if held < need then held = need end
  if held == 0 then
    if c.place then replace(c, c.place, '') end
    return
  end
  local ends = now + lease
  if lenders == 1 then c.first, c.last = ends, ends end
  if ends < c.first then c.first = ends end
  if ends > c.last then c.last = ends end
  c.held, c.length = held, lease
  c.remaining = c.remaining - (held - need)
  c.place, c.loan = c.place or #c.book + 1, pack('>c8i8i8i8i8', c.id, c.number, c.spent, held, ends)
  c.loans, c.lent, c.changed = lenders, c.lent + held, true
end

-- pause returns the wait until there is something to lend again.
local function pause(c)
  local enough = floor(c.quota / 128) * (c.loans + 1)
  if enough > c.want then enough = c.want end
  if enough < c.cost then enough = c.cost end
  local allowed, _, _, retry = decide(c, enough, c.lent)
  return allowed and 0 or retry
end

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
    if c.loans > 0 then call('RPUSH', c.key, 'L' .. about .. c.book) end
    call('PEXPIRE', c.key, floor((latest - now + reset) / 1000) + MARGIN_MS)
    return
  end
  local _, _, _, till = charged(c.name, latest, c.lent, c.p2, c.p3, c.p4, c.p5, c.p6, c.x, c.y, c.z)
  local need = (till > latest and till or latest) / 1000000 + MARGIN
  if c.lives >= need and not c.whole then
    call('SETRANGE', c.key, '0', pack('>i8i8i8I4', c.x, c.y, c.z, c.lives) .. about)
    if c.loan then call('SETRANGE', c.key, 67 + c.place, c.loan) end
    return
  end
  if c.loan then replace(c, c.place, c.loan) end
  local seconds = floor(now / 1000000)
  local life = floor(need) + 1 - seconds
  life = life + (life < 172800 and floor(life / 2) or 86400) + 16
  local lives = seconds + life < 4294967296 and seconds + life or 0
  call('SET', c.key, pack('>i8i8i8I4', c.x, c.y, c.z, lives) .. about .. c.book, 'EX', life)
end

-- decided returns the replies to the checks of a group.
local function decided(checks, pass)
  local replies = {}
  for i = 1, #checks do
    local c = checks[i]
    if c.op ~= 1 then
      if pass and c.op == 0 then
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
        lend(c, pass)
        if c.held == 0 and c.want > 0 then c.pause = pause(c) end
      end
    end
    if c.changed or c.taken then write(c) end
    replies[i] = pack('>Bi8i8i8i8i8i8i8i8i8i8i8', (c.allowed and 1 or 0) + (c.damaged and 2 or 0), c.quota, c.remaining,
      c.retry, c.next, c.reset, c.held, c.length, c.others, c.pause, c.lent, c.loans)
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
      settle(c)
      local made, turn, delta = c.number, c.spent, c.live
      if c.record then
        -- What was spent was charged later, when it was reported.
        c.done = c.adjust(c.key, now, made, -1, delta, c.p1, c.p2, c.p3, c.p4, c.p5, c.p6)
      else
        local x, y, z = c.adjust(now, made, turn, delta, c.p1, c.p2, c.p3, c.p4, c.p5, c.p6, c.x, c.y, c.z)
        if x then c.done, c.x, c.y, c.z = true, x, y, z end
      end
      c.changed = c.changed or c.done
      c.allowed, c.quota, c.remaining, c.retry, c.next, c.reset = true, c.done and 1 or 0, 0, 0, 0, 0
      if c.done and delta > 0 then
        local _, _, remaining = decide(c, 0, c.lent)
        if remaining > 0 then c.remaining = 1 end
      end
    else
      if c.op == 0 then report(c) else settle(c) c.live = 0 end
      c.counts = c.lent + c.live
      c.allowed, c.quota, c.remaining, c.retry, c.next, c.reset, c.s1, c.s2, c.s3 = decide(c, c.cost, c.counts)
      pass = pass and c.allowed
    end
  end
  return decided(checks, pass)
end

-- failed returns the reply for a group that failed, and puts the books back that it has taken. What
-- every group would meet is an error of the call: it says more about Redis than about a key.
local function failed(checks, why)
  for i = 1, #checks do
    local c = checks[i]
    if c.taken and redis.pcall('RPUSH', c.key, c.taken) == 1 then
      redis.pcall('PEXPIRE', c.key, floor((c.p2 + MAX_LEASE) / 1000))
    end
  end
  local text = type(why) == 'table' and why.err or tostring(why)
  if #ARGV[1] == checks.length or string.find(text, 'READONLY') or string.find(text, 'MISCONF') or string.find(text, 'NOREPLICAS') then
    error(why, 0)
  end
  return pack('>BHc0', 1, #text, text)
end

local reply, groups, at, k, ports = { pack('>i8', now) }, ARGV[1], 1, 0, {}
while at <= #groups do
  local checks, first = {}, at
  local n = string.byte(groups, at)
  at = at + 1
  for j = 1, n do
    k = k + 1
    -- A table grows slowly, so all of its fields are there from the beginning.
    local c = {
      key = KEYS[k], name = false, take = false, record = false, adjust = false, p1 = 0, p2 = 0, p3 = 0, p4 = 0, p5 = 0, p6 = 0,
      op = 0, cost = 0, id = false, number = 0, spent = 0, live = 0, want = 0, lease = 0, brief = 0, scarce = false, borrows = false,
      x = 0, y = 0, z = 0, lives = 0, s1 = false, s2 = false, s3 = false, book = '', loans = 0, lent = 0, first = 0, last = 0, counts = 0,
      place = false, loan = false, whole = false,
      taken = false, changed = false, damaged = false, done = false,
      allowed = false, quota = 0, remaining = 0, retry = 0, next = 0, reset = 0, held = 0, length = 0, others = 0, pause = 0,
    }
    c.op, c.cost, c.id, c.number, c.spent, c.live, c.want, c.lease, c.brief, at = unpack_struct('>Bi8c8i8i8i8i8i8i8', groups, at)
    at, c.name, c.p1, c.p2, c.p3, c.p4, c.p5, c.p6 = cmsgpack.unpack_limit(groups, 7, at - 1)
    at = at < 0 and #groups + 1 or at + 1
    checks[j] = c
    local name = c.name
    if c.op >= 8 then c.op, c.borrows = c.op - 8, true end
    if c.op >= 4 then c.op, c.scarce = c.op - 4, true end
    local made = c.op ~= 1 and ports[name] or { port(name, c.op == 1 and 2 or 0) }
    if c.op ~= 1 then ports[name] = made end
    c.take, c.record, c.adjust = made[1], made[2], made[3]
  end
  checks.length = at - first
  local done, text = pcall(group, checks)
  reply[#reply + 1] = done and '\0' .. text or failed(checks, text)
end
return table.concat(reply)
