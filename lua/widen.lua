-- widen.lua counts which keys of a network are banned at once, and which others pass, so that a ban can widen to the network.
-- In:   KEYS[1], the suspects of a zone, a sorted set of networks with the times since which they are; ARGV: what to do, and for
--       ban: the network, the key, for how many microseconds it is banned (0: it is not), and how many banned keys make a suspect;
--       passed: the network, and keys of it that pass; judge: the network, how many of its keys must be banned, how many may pass, for
--       how many microseconds the decision holds, and for how many if the network is spared; list: nothing
-- Out:  for judge the verdict, the banned keys, and those that pass, unless the network is no suspect; for list a line for each
--       suspect and each decision: what it is, the network, and since when or for how much longer it is
-- What is known of a network is in the slot of the suspects: the banned keys, and those that pass, with the times at which they no longer
-- count. A decision is in one set for all networks of the zone.
local call = redis.call
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local suspects, what, network = KEYS[1], ARGV[1], ARGV[2]
local decided = suspects .. '/decided'

local function number(n) return string.format('%.0f', n) end

-- last keeps a set until the last of its members ends.
local function last(set)
  local till = call('ZREVRANGEBYSCORE', set, '+inf', '-inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  if till then call('PEXPIRE', set, math.ceil((tonumber(till) - now) / 1000) + MARGIN_MS) end
end

-- keep keeps a member of a set until a time.
local function keep(set, member, till)
  call('ZADD', set, number(till), member)
  last(set)
end

-- count removes what no longer counts, and counts the rest.
local function count(set)
  call('ZREMRANGEBYSCORE', set, '-inf', number(now))
  return call('ZCARD', set)
end

call('ZREMRANGEBYSCORE', suspects, '-inf', number(now - SUSPECT_FOR))
call('ZREMRANGEBYSCORE', decided, '-inf', number(now))
if what == 'list' then
  local out = {}
  for _, set in ipairs({suspects, decided}) do
    local found = call('ZRANGEBYSCORE', set, '-inf', '+inf', 'WITHSCORES')
    for i = 1, #found, 2 do
      out[#out + 1] = (set == decided and '' or 'suspect ') .. found[i] .. ' ' .. number(math.abs(now - tonumber(found[i + 1])))
    end
  end
  return table.concat(out, '\n')
end
local banned, passed = suspects .. '/banned/' .. network, suspects .. '/passed/' .. network
local many = count(banned)
if what == 'ban' then
  local key, life = ARGV[3], tonumber(ARGV[4])
  if life <= 0 then
    call('ZREM', banned, key)
    return ''
  end
  if many < MAX_WIDEN or call('ZSCORE', banned, key) then keep(banned, key, now + life) end
  call('ZREM', passed, key)
  if call('ZCARD', banned) < tonumber(ARGV[5]) or call('ZSCORE', suspects, network) or call('ZCARD', suspects) >= MAX_SUSPECTS then return '' end
  local all = call('ZRANGEBYSCORE', decided, '-inf', '+inf')
  for i = 1, #all do
    if string.match(all[i], ' (%S+)$') == network then return '' end
  end
  call('ZADD', suspects, number(now), network)
  call('PEXPIRE', suspects, math.ceil(SUSPECT_FOR / 1000) + MARGIN_MS)
elseif not call('ZSCORE', suspects, network) then
  return ''
elseif what == 'passed' then
  local room = MAX_WIDEN + 1 - count(passed)
  for i = 3, #ARGV do
    if room > 0 and not call('ZSCORE', banned, ARGV[i]) then room = room - call('ZADD', passed, number(now + PASSED_FOR), ARGV[i]) end
  end
  last(passed)
else
  local innocent, verdict, life = count(passed), 0, 0
  call('ZREM', suspects, network)
  if many >= tonumber(ARGV[3]) then
    verdict, life = 2, tonumber(ARGV[5])
    if innocent > tonumber(ARGV[4]) then verdict, life = 1, tonumber(ARGV[6]) end
    keep(decided, verdict .. ' ' .. many .. ' ' .. innocent .. ' ' .. network, now + life)
    if verdict == 2 then call('DEL', banned) end
  end
  return verdict .. ' ' .. many .. ' ' .. innocent
end
return ''
