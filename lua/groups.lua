-- The part of take.lua for calls in modes 0 and 1: groups of all kinds of checks. take.lua describes their
-- form. It is a function, because a call of one takes room for all of its variables, and most calls need
-- none of these. What it needs from outside are arguments, because reaching them from inside costs more.
if not last then last, all, n, noticed, refused, uncharged = (function(call, floor, byte, pack, unpack_struct, read, groups, mode, now, careful, unable, full, uncharged, lacks, unlock)

--[[wrongtype]]

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

      -- The key rules: whether the key is exempt, the rest of its ban (-1: forever), the flags
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
          left = left or ban_left(now, first_ban, within, longest, known[ban], known[ban + 1], known[ban + 2])
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
            if type(value) == 'table' then wrongtype(value, 'GET', key) end
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
          stuck = unable and (not full or x and lacks[base])
          write = x and not stuck
        end
        -- A replica that is behind does not have yet what is to be changed.
        if adjust and not write and not unable then nothing(call, key) end
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
          if type(last) == 'table' then wrongtype(last, 'LINDEX', key, -1) end
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
          local held = op == 3 and delay or 0
          allowed, quota, remaining, retry, next, reset = take(now, 0, p1, p2, p3, p4, p5, p6, s1, s2, s3)
          delay = held
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
