-- take decides checks on the clock of this Redis.
--
-- KEYS[i]   the key of check i.
-- ARGV[1]   one byte for each group: how many checks it has. The checks of a group
--           are charged together or not at all; groups are decided one after the
--           other at one time.
-- ARGV[i+1] check i: six parameters of the limit and the cost as big-endian integers
--           of eight bytes, then the algorithm's name and a zero byte.
--
-- The reply is one string with 57 bytes for each check: a byte of flags (1: allowed,
-- 2: the stored state was damaged and counts as none), then quota, remaining, retry
-- (-1: never), next, reset and delay in the same integers; durations in microseconds.
--
-- An algorithm is a function
--   take(p, now, cost, s1, s2, s3) -> allowed, quota, remaining, retry, next, reset,
--                                     delay, s1, s2, s3
-- whose state take.lua keeps as a string of three integers; or two functions
--   decide(p, now, cost, key)      -> allowed, ..., delay, a, b, c, damaged
--   record(key, cost, a, b, c)
-- that keep what they want under the key. Neither expires keys; this script does.

local floor = math.floor
local NEVER = -1
local MAX_EXACT = 9007199254740992
local MAX_STEP_BACK = 86400000000
local FORMAT = '>i8i8i8'

-- muldiv returns a*b/c rounded down, and the remainder, exact although the product may
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
  return q, r
end

local function muldiv_up(a, b, c)
  local q, r = muldiv(a, b, c)
  if r > 0 then return q + 1 end
  return q
end

local algorithms = {}
local function algorithm(name)
  local a = algorithms[name]
  if not a then
    --[[algorithms]]
    algorithms[name] = a
  end
  return a
end

local now
do
  local time = --[[clock]] redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- state reads the three numbers of a key, and tells whether it found something else.
local function state(key)
  local value = redis.pcall('GET', key)
  if not value then return 0, 0, 0, false end
  if type(value) ~= 'string' or #value ~= 24 then return 0, 0, 0, true end
  local a, b, c = struct.unpack(FORMAT, value)
  return a, b, c, false
end

local function decide(i, peek)
  local p, cost, name = {}, nil, nil
  p[1], p[2], p[3], p[4], p[5], p[6], cost, name = struct.unpack('>i8i8i8i8i8i8i8s', ARGV[i + 1])
  if peek then cost = 0 end
  local a = algorithm(name)
  local key = KEYS[i]
  local allowed, quota, remaining, retry, next, reset, delay, x, y, z, damaged
  if a.record then
    allowed, quota, remaining, retry, next, reset, delay, x, y, z, damaged = a.take(p, now, cost, key)
  else
    local s1, s2, s3
    s1, s2, s3, damaged = state(key)
    allowed, quota, remaining, retry, next, reset, delay, x, y, z = a.take(p, now, cost, s1, s2, s3)
  end
  local flags = (allowed and 1 or 0) + (damaged and 2 or 0)
  return struct.pack('>Bi8i8i8i8i8i8', flags, quota, remaining, retry, next, reset, delay),
    allowed, a, cost, reset, x, y, z
end

local replies, n = {}, 0
local charges = {}
for g = 1, #ARGV[1] do
  local first, last = n + 1, n + string.byte(ARGV[1], g)
  local pass = true
  for i = first, last do
    local reply, allowed, a, cost, reset, x, y, z = decide(i)
    replies[i] = reply
    if not allowed then
      pass = false
      charges[i] = nil
    else
      charges[i] = { a, cost, reset, x, y, z }
    end
  end
  for i = first, last do
    local charge = charges[i]
    if not pass then
      -- What would have passed is not charged, and its reply must not say so.
      if charge and last > first then replies[i] = decide(i, true) end
    elseif charge[2] > 0 then
      local a, key = charge[1], KEYS[i]
      local ttl = floor(charge[3] / 1000) + MARGIN_MS
      if a.record then
        a.record(key, charge[2], charge[4], charge[5], charge[6])
        redis.call('PEXPIRE', key, ttl)
      else
        redis.call('SET', key, struct.pack(FORMAT, charge[4], charge[5], charge[6]), 'PX', ttl)
      end
    end
  end
  n = last
end
return table.concat(replies)
