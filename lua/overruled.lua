-- overruled.lua is about what takes precedence over the limit for a key: an override, or a ban.
-- In:   now, call, pack, unpack_struct, unlock and decide of lend.lua, the functions of wrongtype.lua, open and expire
-- Out:  overrule, elsewhere, banned and count, functions of c, a check whose loan was reported
local ban_left, ban_refused

-- text returns what a key has, if it is a string.
local function text(key)
  local value = redis.pcall('GET', key)
  if type(value) ~= 'table' then return value end
  wrongtype(value, 'GET', key)
end

-- overrule reads the override and the ban of a key. While one holds, nothing is lent: the limit of an override takes the
-- place of the rule, and c.other is its state, if that is not the state of the rule.
local function overrule(c)
  local values, j, index, damaged = { c.setting and text(c.setting) }, 1, c.index
  if values[1] then
    local valid, kind, till, more = pcall(unpack_struct, '>Bi8', values[1])
    if not valid then
      damaged = true
    elseif till == 0 or till > now then
      if kind == 1 then
        c.exempt = true
      elseif kind == 2 then
        c.left = till == 0 and NEVER or till - now
      else
        local name, p1, p2, p3, p4, p5, p6 = c.name, c.p1, c.p2, c.p3, c.p4, c.p5, c.p6
        local override, marks, place, wrote
        --[[include override.lua]]
        if override then
          c.override, c.p1, c.p2, c.p3, c.p4, c.p5, c.p6 = override, p1, p2, p3, p4, p5, p6
          c.other = index ~= c.index and KEYS[index]
        end
      end
    end
  end
  if c.ban then
    if not ban_left then
      --[[include ban.lua]]
    end
    local value = text(c.ban)
    if value and #value == 24 then
      c.till, c.since, c.count = unpack_struct('>i8i8i8', value)
      c.known = true
    elseif value then
      damaged = true
    end
    c.left = c.left or ban_left(now, c.first_ban, c.within, c.longest, c.till, c.since, c.count)
  end
  c.damaged = c.damaged or damaged or false
  if c.exempt or c.left or c.override then c.want, c.borrows = 0, false end
end

-- elsewhere returns the check for the state in which the limit of an override counts. Nothing is lent there.
local function elsewhere(c)
  local d = {}
  for field, value in pairs(c) do d[field] = value end
  d.key, d.here, d.x, d.y, d.z, d.born, d.lives, d.size = c.other, c, 0, 0, 0, now, 0, 0
  d.book, d.loans, d.lent, d.live, d.number, d.place, d.loan = '', 0, 0, 0, 0, false, false
  d.taken, d.changed, d.whole, d.owed, d.entries = false, false, false, 0, 0
  open(d)
  expire(d)
  c.allowed, c.remaining = false, 0
  return d
end

-- banned refuses a check of a key that is banned. See decide.lua.
local function banned(c)
  if c.allowed then
    local _
    _, c.quota, c.remaining, c.retry, c.next, c.reset = decide(c, 0, c.counts)
  end
  if c.left == NEVER then
    c.retry, c.next = NEVER, 0
  else
    if c.retry ~= NEVER and c.retry < c.left then c.retry = c.left end
    if c.remaining > 0 or c.next < c.left then c.next = c.left end
    if c.reset < c.next then c.reset = c.next end
  end
  c.allowed, c.remaining = false, 0
end

-- count counts a refusal towards a ban, which may begin with it.
local function count(c)
  c.left, c.till, c.since, c.count, c.life = ban_refused(now, c.first_ban, c.after, c.within, c.longest, c.till, c.since, c.count)
  c.begins = c.left
end

-- remember writes what was counted.
local function remember(c)
  if unlock then unlock(c.ban) end
  call('SET', c.ban, pack('>i8i8i8', c.till, c.since, c.count), 'PX', floor(c.life / 1000) + MARGIN_MS)
end
