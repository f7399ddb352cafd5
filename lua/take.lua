-- take decides checks on the clock of this Redis.
--
-- KEYS[i]   the key of check i.
-- ARGV[1]   one byte for each group: how many checks it has. The checks of a group
--           are charged together or not at all; groups are decided one after the
--           other at one time.
-- ARGV[i+1] check i: six parameters of the limit and the cost as big-endian integers
--           of eight bytes, the algorithm's name and a zero byte, a byte that says what
--           to do (0: decide, 1: renew what is held, 2: give it back) and then the
--           hold: the name of what is held, or for a turn in a queue its time as an
--           integer. Renewing and giving back are groups of their own.
--
-- The reply is one string: the time in microseconds, then 57 bytes for each check: a
-- byte of flags (1: allowed, 2: the stored state was damaged and counts as none), then
-- quota, remaining, retry (-1: never), next, reset and delay in the same integers;
-- durations in microseconds.
--
-- The twin of an algorithm sets functions. For a Counter, whose state this script keeps
-- as a string of three integers,
--   take(now, cost, p1, .., p6, s1, s2, s3) -> allowed, quota, remaining, retry, next,
--                                              reset, delay, s1, s2, s3
--   give_back(turn, cost, p1, .., p6, s1, s2, s3) -> s1, s2, s3 or nothing  (a Returner)
-- for a Recorder or a Lender, which keep what they want under the key,
--   take(now, cost, p1, .., p6, key) -> allowed, .., delay, a, b, c, damaged
--   record(key, cost, a, b, c, hold)
--   give_back(key, cost, hold)                                              (a Lender)
-- None of them expires keys; this script does.
--
-- All of this runs anew for each call, and making a function or a table is not free. So
-- there are few of them, and a group of one check, which most are, needs none.

local call, floor, pack, unpack_struct = redis.call, math.floor, struct.pack, struct.unpack
local NEVER = -1
local MAX_EXACT = 9007199254740992
local MAX_STEP_BACK = 86400000000

-- muldiv returns a*b/c rounded down and rounded up, exact although the product may
-- exceed 2^53: a product then is a sum of two doubles (T. J. Dekker, "A floating-point
-- technique for extending the available precision", Numer. Math. 18, 1971).
local function muldiv(a, b, c)
  local p = a * b
  local q = floor(p / c)
  local r
  if p < MAX_EXACT then
    r = p - q * c
  else
    local function error_of(x, y, xy)
      local u, v = 134217729 * x, 134217729 * y
      local xh, yh = u - (u - x), v - (v - y)
      local xl, yl = x - xh, y - yh
      return ((xh * yh - xy) + xh * yl + xl * yh) + xl * yl
    end
    local qc = q * c
    r = (p - qc) + (error_of(a, b, p) - error_of(q, c, qc))
  end
  while r < 0 do q, r = q - 1, r + c end
  while r >= c do q, r = q + 1, r - c end
  return q, r > 0 and q + 1 or q
end

local now
do
  local time = --[[clock]] redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

local groups, replies = ARGV[1], nil
if #KEYS > 1 then replies = {} end
local name, take, record, give_back -- of the algorithm used last
local first = 1
for g = 1, #groups do
  local last = first + string.byte(groups, g) - 1
  local charges = last > first and {} or nil -- of the checks that pass
  local pass, peek = true, false
  repeat
    for i = first, last do
      if not peek or charges[i] then
        local key, argument = KEYS[i], ARGV[i + 1]
        local p1, p2, p3, p4, p5, p6, cost, wanted, op, rest = unpack_struct('>i8i8i8i8i8i8i8sB', argument)
        local hold = rest <= #argument and string.sub(argument, rest) or ''
        if wanted ~= name then
          name, take, record, give_back = wanted, nil, nil, nil
          --[[algorithms]]
        end

        -- The state of a Counter.
        local s1, s2, s3, damaged = key, nil, nil, nil
        if not record then
          local value = redis.pcall('GET', key)
          if not value then
            s1, s2, s3 = 0, 0, 0
          elseif type(value) == 'string' and #value == 24 then
            s1, s2, s3 = unpack_struct('>i8i8i8', value)
          else
            s1, s2, s3, damaged = 0, 0, 0, true
          end
        end

        local allowed, quota, remaining, retry, next, reset, delay = true, 0, 0, 0, 0, 0, 0
        local x, y, z, broken
        if op == 2 then
          if not give_back then
            reset = 0 -- nothing is held
          elseif record then
            give_back(key, cost, hold)
          else
            x, y, z = give_back(unpack_struct('>i8', hold), cost, p1, p2, p3, p4, p5, p6, s1, s2, s3)
            reset = x and call('PTTL', key) * 1000 or 0
          end
        else
          local asked = (peek or op == 1) and 0 or cost
          allowed, quota, remaining, retry, next, reset, delay, x, y, z, broken =
            take(now, asked, p1, p2, p3, p4, p5, p6, s1, s2, s3)
          damaged = damaged or broken
          if op == 1 and reset < y then reset = y end
        end

        local flags = (allowed and 1 or 0) + (damaged and 2 or 0)
        if not replies then
          replies = pack('>i8Bi8i8i8i8i8i8', now, flags, quota, remaining, retry, next, reset, delay)
        else
          replies[i] = pack('>Bi8i8i8i8i8i8', flags, quota, remaining, retry, next, reset, delay)
        end

        if not allowed then
          pass = false
        elseif charges then
          charges[i] = { cost, reset, x, y, z, record, hold }
        elseif cost > 0 and x and (op ~= 2 or not record) then
          local ttl = floor(reset / 1000) + MARGIN_MS
          if record then
            record(key, cost, x, y, z, hold)
            call('PEXPIRE', key, ttl)
          else
            call('SET', key, pack('>i8i8i8', x, y, z), 'PX', ttl)
          end
        end
      end
    end
    -- What would have passed but for others is not charged, and its reply must not say
    -- so: it is decided once more, as a peek.
    peek = charges and not pass and not peek
  until not peek

  if charges and pass then
    for i = first, last do
      local charge, key = charges[i], KEYS[i]
      if charge[1] > 0 then
        local ttl = floor(charge[2] / 1000) + MARGIN_MS
        if charge[6] then
          charge[6](key, charge[1], charge[3], charge[4], charge[5], charge[7])
          call('PEXPIRE', key, ttl)
        else
          call('SET', key, pack('>i8i8i8', charge[3], charge[4], charge[5]), 'PX', ttl)
        end
      end
    end
  end
  first = last + 1
end
if type(replies) == 'string' then return replies end
return pack('>i8', now) .. table.concat(replies)
