-- loans.lua reads and changes the book of a key's loans.
-- In:   now, call, pack, unpack_struct, floor, sub, find, dry, booked and the functions above it in lend.lua
-- Out:  open, expire, report, own, lend, pause and replace, functions of c, a check with its state

local NOBODY = string.rep('\0', 8)

-- damaged forgets loans that make no sense.
local function damaged(c)
  c.damaged, c.whole, c.book, c.loans, c.lent, c.place = true, true, '', 0, 0, false
end

-- open reads the state, and takes the book off it.
local function open(c)
  local value, at
  if c.record then value, at = redis.pcall('LINDEX', c.key, -1), 2 else value, at = redis.pcall('GET', c.key), 37 end
  if type(value) == 'table' then
    if c.record then wrongtype(value, 'LINDEX', c.key, -1) else wrongtype(value, 'GET', c.key) end
  end
  if c.record then
    if type(value) ~= 'string' or #value % 40 ~= 1 or #value > 1 + 65 * 40 or string.byte(value) ~= 76 then return end
    if dry then
      booked[c.key] = true
    else
      -- A book that cannot be put back stays, and this fails. Redis 6 cannot tell before.
      if redis.acl_check_cmd and not redis.acl_check_cmd('RPUSH', c.key, value) then call('RPUSH', c.key, value) end
      call('LTRIM', c.key, 0, -2)
      c.taken = value
    end
  elseif not value then
    return
  elseif type(value) ~= 'string' or #value % 40 ~= 36 or #value > 36 + 65 * 40 then
    c.damaged = true
    return
  else
    c.x, c.y, c.z, c.born, c.lives = unpack_struct('>i8i8i8i8I4', value)
    if c.born > now then c.born = now end
    c.size = #value
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

-- expire ends the loans that are over, in the order of their ends. None ends before c.first.
local function expire(c)
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

-- place returns where the loan of a borrower is in the book.
local function place(c)
  local at = find(c.book, c.id, 1, true)
  while at and at % 40 ~= 1 do at = find(c.book, c.id, at + 1, true) end
  return at
end

-- report charges what a borrower has spent, and ends its loan, but leaves it in the book.
local function report(c)
  expire(c)
  if c.number > 0 then
    local at = place(c)
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

-- own reports whether a cost is refused only because of what its borrower holds, which was not reported.
local function own(c)
  local at = c.number == 0 and c.loans > 0 and c.id ~= NOBODY and place(c)
  local number, _, held
  if at then number, _, held = loan(c, at) end
  return number and decide(c, c.cost, c.counts - held)
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
