-- lend.lua decides checks of zones that lend, and lends. It is the Lua port of package
-- algorithms/lend, which says what the numbers mean, around the ports of the algorithms.
--
-- KEYS     for each check, the key of its state. While parts of it are lent, the state has a book
--          of the loans at its end, of 40 bytes for each. The state of a Counter is a string: that
--          of take.lua, and the book behind it. The state of a Recorder is a list, and its last
--          element is the letter L and the book. So take.lua notices that parts are lent when it
--          finds a state that it cannot read: then it decides nothing.
-- ARGV[1]  groups: a byte for the number of their checks, and the checks, each of them
--   a byte         what to do: 0 ask, 1 adjust a charge, 2 peek; plus 4 if the borrower was refused
--                  the last time, plus 8 if the cost is lent instead of charged
--   a number       the cost
--   five numbers   the borrower, and the number, spent, live, want and lease of its ask, all 0 if
--                  nothing is borrowed; to adjust, when the charge was made, its turn and the delta
--   the rule       the algorithm's name and six parameters, as MessagePack has them
--
-- The costs of a group are charged together or not at all. The groups are decided one after the
-- other. The reply is one string: the time, and for each group a byte. If that is 1, what follows
-- is why the group failed: two bytes for the length, and the text. If it is 0, for each check
--   a byte         flags: 1 allowed, 2 what was stored was damaged and ignored
--   eleven numbers quota, remaining, retry, next, reset, held, lease, others, pause, what is lent in
--                  all, and to how many
-- Numbers are big-endian integers of eight bytes, times and durations are in microseconds. See
-- take.lua for the functions that ports have.

local call, floor, pack, unpack_struct = redis.call, math.floor, struct.pack, struct.unpack
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

-- decide decides whether a cost fits if so much more was charged.
local function decide(c, at, cost, more)
  local take, p1, p2, p3, p4, p5, p6 = c.take, c.p1, c.p2, c.p3, c.p4, c.p5, c.p6
  if not c.record then
    local x, y, z, _ = c.x, c.y, c.z
    if more > 0 then _, _, _, _, _, _, _, x, y, z = take(at, more, MAX_EXACT, p2, p3, p4, p5, p6, x, y, z) end
    return take(at, cost, p1, p2, p3, p4, p5, p6, x, y, z)
  end
  -- What is charged more would be the newest events of the log.
  local fits = p1 > more and p1 - more or 0
  local allowed, _, remaining, retry, next, reset, delay, a, t, sum = take(at, cost, fits, p2, p3, p4, p5, p6, c.key)
  if more > 0 then
    if next == 0 then next = t + p2 - at end
    reset = t + p2 - at
    if retry == NEVER and cost <= p1 then retry = t + p2 - at end
    if p1 == 0 then next, reset = 0, 0 end
  end
  return allowed, p1, remaining, retry, next, reset, delay, a, t, sum
end

-- charge charges a cost, whether it fits or not.
local function charge(c, at, cost)
  if cost <= 0 then return end
  c.changed = true
  local _
  local a, b, d
  if c.record then
    _, _, _, _, _, _, _, a, b, d = c.take(at, 0, MAX_EXACT, c.p2, c.p3, c.p4, c.p5, c.p6, c.key)
    c.record(c.key, cost, a, b, d)
  else
    _, _, _, _, _, _, _, c.x, c.y, c.z = c.take(at, cost, MAX_EXACT, c.p2, c.p3, c.p4, c.p5, c.p6, c.x, c.y, c.z)
  end
end

local function held_of(book)
  local held = 0
  for i = 1, #book do held = held + book[i][4] end
  return held
end

-- open reads the state of a Counter, and takes the book off the state.
local function open(c)
  local value, book = nil, 2
  if c.record then value = redis.pcall('LINDEX', c.key, -1) else value = redis.pcall('GET', c.key) end
  c.x, c.y, c.z, c.book = 0, 0, 0, {}
  if c.record then
    if type(value) ~= 'string' or #value % 40 ~= 1 or #value > 1 + 64 * 40 or string.byte(value) ~= 76 then return end
    call('LTRIM', c.key, 0, -2)
    c.taken = value
  elseif not value then
    return
  elseif type(value) ~= 'string' or #value % 40 ~= 28 or #value > 28 + 64 * 40 then
    c.damaged = true
    return
  else
    local _
    c.x, c.y, c.z, _, book = unpack_struct('>i8i8i8I4', value)
  end
  for at = book, #value, 40 do
    local id, number, spent, held, ends = unpack_struct('>c8i8i8i8i8', value, at)
    if number < 0 or number >= MAX_EXACT or spent < 0 or spent >= MAX_EXACT or held < 0 or held > 1000000000000 or
      ends < 0 or ends >= MAX_EXACT then
      c.damaged, c.book = true, {}
      return
    end
    c.book[#c.book + 1] = { id, number, spent, held, ends }
  end
end

-- settle ends the loans that are over.
local function settle(c)
  local book = c.book
  while true do
    local first
    for i = 1, #book do
      if book[i][5] <= now and (not first or book[i][5] < book[first][5]) then first = i end
    end
    if not first then break end
    local ends = book[first][5]
    charge(c, (ends > 1 and ends or 1) - 1, book[first][4])
    table.remove(book, first)
    c.changed = true
  end
  for i = 1, #book do
    if book[i][5] > now + MAX_LEASE then book[i][5], c.changed = now + MAX_LEASE, true end
  end
end

-- report charges what a borrower has spent, and takes its loan out of the book.
local function report(c)
  settle(c)
  if c.number > 0 then
    local known
    for i = 1, #c.book do
      local l = c.book[i]
      if l[1] == c.id then
        known = true
        if l[2] >= c.number then
          c.number = 0
        else
          charge(c, now, c.spent - l[3])
          if c.live > 0 and c.lease < l[5] - now then c.lease = l[5] - now end
          table.remove(c.book, i)
          c.changed = true
        end
        break
      end
    end
    if not known and #c.book >= 64 then
      charge(c, now, c.live)
      c.number = 0
    end
  end
  if c.number == 0 then c.live, c.want, c.borrows = 0, 0, false end
end

-- lend lends what the borrower wants, or less.
local function lend(c, pass)
  local lenders, others = #c.book + 1, held_of(c.book)
  c.others = others
  local need = c.live
  if c.borrows and pass then need = need + c.cost end
  local parts = 2 * lenders
  if c.scarce then parts = lenders > 2 and lenders or 2 end
  local held = floor((c.remaining + need) / parts)
  if held > c.want then held = c.want end
  if held < 2 or not c.allowed then held = 0 end
  if held < need then held = need end
  if held == 0 then return end
  c.held, c.length = held, c.lease
  c.remaining = c.remaining - (held - need)
  c.book[lenders] = { c.id, c.number, c.spent, held, now + c.lease }
  c.changed = true
end

-- pause returns the wait until there is something to lend again.
local function pause(c)
  local enough = floor(c.quota / 128) * (#c.book + 1)
  if enough > c.want then enough = c.want end
  if enough < c.cost then enough = c.cost end
  local allowed, _, _, retry = decide(c, now, enough, held_of(c.book))
  return allowed and 0 or retry
end

-- write keeps what has changed, for as long as it counts.
local function write(c)
  local latest, held = now, held_of(c.book)
  for i = 1, #c.book do
    if c.book[i][5] > latest then latest = c.book[i][5] end
  end
  local _, reset
  if c.record then
    _, _, _, _, _, reset = c.take(latest, held, MAX_EXACT, c.p2, c.p3, c.p4, c.p5, c.p6, c.key)
  else
    _, _, _, _, _, reset = c.take(latest, held, MAX_EXACT, c.p2, c.p3, c.p4, c.p5, c.p6, c.x, c.y, c.z)
  end
  local life = floor((latest - now + reset) / 1000) + MARGIN_MS
  local text = { 'L' }
  if not c.record then
    local lives = floor((now / 1000 + life) / 1000) -- the second until which the key lives
    text[1] = pack('>i8i8i8I4', c.x, c.y, c.z, lives < 4294967296 and lives or 0)
  end
  for i = 1, #c.book do
    local l = c.book[i]
    text[i + 1] = pack('>c8i8i8i8i8', l[1], l[2], l[3], l[4], l[5])
  end
  if not c.record then
    call('SET', c.key, table.concat(text), 'PX', life)
  else
    c.taken = nil
    if text[2] then call('RPUSH', c.key, table.concat(text)) end
    call('PEXPIRE', c.key, life)
  end
end

-- decided returns the replies to the checks of a group.
local function decided(checks, pass)
  local replies = {}
  for i = 1, #checks do
    local c = checks[i]
    if c.op ~= 1 then
      if pass and c.op == 0 then
        if not c.borrows then charge(c, now, c.cost) end
      elseif c.allowed then
        c.allowed, c.quota, c.remaining, c.retry, c.next, c.reset = decide(c, now, 0, c.counts)
      end
      if c.op == 0 then
        lend(c, pass)
        if c.held == 0 and c.want > 0 then c.pause = pause(c) end
      end
    end
    if c.changed or c.taken then write(c) end
    replies[i] = pack('>Bi8i8i8i8i8i8i8i8i8i8i8', (c.allowed and 1 or 0) + (c.damaged and 2 or 0), c.quota, c.remaining,
      c.retry, c.next, c.reset, c.held, c.length, c.others, c.pause, held_of(c.book), #c.book)
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
    else
      if c.op == 0 then report(c) else settle(c) c.live = 0 end
      c.counts = held_of(c.book) + c.live
      c.allowed, c.quota, c.remaining, c.retry, c.next, c.reset = decide(c, now, c.cost, c.counts)
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
    local c = { key = KEYS[k], held = 0, length = 0, others = 0, pause = 0 }
    local name
    c.op, c.cost, c.id, c.number, c.spent, c.live, c.want, c.lease, at = unpack_struct('>Bi8c8i8i8i8i8i8', groups, at)
    at, name, c.p1, c.p2, c.p3, c.p4, c.p5, c.p6 = cmsgpack.unpack_limit(groups, 7, at - 1)
    at = at < 0 and #groups + 1 or at + 1
    checks[j] = c
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
