-- concurrency.lua is the port of algorithms/concurrency.go; ports.lua says what comes in and out. The leases are a sorted
-- set: the member is the name of a slot, and the score is when its lease ends, in microseconds. A cost of n takes n slots
-- with n names.

local function precise(n) return string.format('%.0f', n) end

-- A lease that ends later than this is damaged and does not count.
local function horizon(now) return precise(now + MAX_STEP_BACK) end

-- shorten lets leases from before the clock went back end as one that begins now, see Concurrency.Decide in Go.
local function shorten(key, now, lease)
  local late, ends = call('ZRANGEBYSCORE', key, '(' .. precise(now + LONGEST_LEASE), horizon(now)), precise(now + lease)
  for _, name in ipairs(late) do call('ZADD', key, ends, name) end
end

take = function(now, cost, events, lease, _, _, _, _, key)
  local from, to = '(' .. precise(now), horizon(now)
  local live, damaged = redis.pcall('ZCOUNT', key, from, to), false
  if type(live) ~= 'number' then
    wrongtype(live, 'ZCOUNT', key, from, to)
    live, damaged = 0, true
  end
  local function ends(index)
    local found = call('ZRANGEBYSCORE', key, from, to, 'WITHSCORES', 'LIMIT', index, 1)
    local at = tonumber(found[2]) or now
    if careful and at > now + LONGEST_LEASE then at = now + lease end -- as the next call that may write shortens it
    return at
  end
  local remaining = events > live and events - live or 0
  local allowed = cost <= remaining and cost <= MAX_SLOT_COST

  local next, reset, retry = 0, 0, 0
  if live > 0 then
    local latest = call('ZREVRANGEBYSCORE', key, to, from, 'WITHSCORES', 'LIMIT', 0, 1)
    reset = tonumber(latest[2]) - now
    if reset > LONGEST_LEASE and not allowed then
      if not careful then shorten(key, now, lease) end
      reset = ends(live - 1) - now
    end
    next = ends(live > events and live - events or 0) - now
  end
  if allowed then
    if cost > 0 then
      remaining = remaining - cost
      if live == 0 or next > lease then next = lease end
      if reset < lease then reset = lease end
    end
  elseif cost > events or cost > MAX_SLOT_COST then
    retry = NEVER
  else
    retry = ends(live + cost - events - 1) - now
  end
  if remaining == events then next, reset = 0, 0 end
  return allowed, events, remaining, retry, next, reset, 0, now, lease, horizon(now), damaged
end

-- card returns how many slots a sorted set has, or nil if the key has another type.
local function card(key)
  local n = redis.pcall('ZCARD', key)
  return type(n) == 'number' and n or wrongtype(n, 'ZCARD', key)
end

-- ZADD must come first. When Redis is out of memory, it refuses a command that needs memory,
-- but only until the script has written something.
record = function(key, cost, now, lease, horizon, lease_id)
  if not card(key) then call('DEL', key) end
  local ends = precise(now + lease)
  local members = { ends, lease_id }
  for i = 2, cost do members[2 * i - 1], members[2 * i] = ends, lease_id .. '#' .. i end
  call('ZADD', key, unpack(members))
  call('ZREMRANGEBYSCORE', key, '-inf', precise(now))
  call('ZREMRANGEBYSCORE', key, '(' .. horizon, '+inf')
end

if op == 2 then
  -- A lease is given back by name, so doing it twice does no harm, and only as a whole.
  adjust = function(key, _, _, _, delta, _, _, _, _, _, _, lease_id)
    local held = delta < 0 and card(key)
    if not held or call('ZSCORE', key, lease_id .. '#' .. (1 - delta)) then return false end
    -- A set that becomes empty is no key any more: while its slot of the Cluster moves to another node, a script may not touch
    -- such a key again. So the last one stays, as one that has ended.
    local last = held > 1 and lease_id .. '#' .. held or lease_id
    local stays = held <= -delta and tonumber(call('ZSCORE', key, last) or 0) > 0
    if stays then call('ZADD', key, 0, last) end
    local ended, name = 0, lease_id
    while ended < -delta and name ~= last and call('ZREM', key, name) == 1 do
      ended = ended + 1
      name = lease_id .. '#' .. (ended + 1)
    end
    return stays or ended > 0
  end
end
