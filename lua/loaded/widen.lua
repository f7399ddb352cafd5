-- Made of lua/widen.lua by "make scripts". Do not edit.
local call = redis.call
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local suspects, what, network = KEYS[1], ARGV[1], ARGV[2]
local decided = suspects .. '/decided'
local function number(n) return string.format('%.0f', n) end
local function last(set)
  local till = call('ZREVRANGEBYSCORE', set, '+inf', '-inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  if till then call('PEXPIRE', set, math.ceil((tonumber(till) - now) / 1000) + 1000--[[MARGIN_MS]]) end
end
local function keep(set, member, till)
  call('ZADD', set, number(till), member)
  last(set)
end
local function count(set)
  call('ZREMRANGEBYSCORE', set, '-inf', number(now))
  return call('ZCARD', set)
end
call('ZREMRANGEBYSCORE', suspects, '-inf', number(now - 900000000))
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
  if many < 1000 or call('ZSCORE', banned, key) then keep(banned, key, now + life) end
  call('ZREM', passed, key)
  if call('ZCARD', banned) < tonumber(ARGV[5]) or call('ZSCORE', suspects, network) or call('ZCARD', suspects) >= 64 then return '' end
  local all = call('ZRANGEBYSCORE', decided, '-inf', '+inf')
  for i = 1, #all do
    if string.match(all[i], ' (%S+)$') == network then return '' end
  end
  call('ZADD', suspects, number(now), network)
  call('PEXPIRE', suspects, math.ceil(900000000 / 1000) + 1000--[[MARGIN_MS]])
elseif not call('ZSCORE', suspects, network) then
  return ''
elseif what == 'passed' then
  local room = 1000 + 1 - count(passed)
  for i = 3, #ARGV do
    if room > 0 and not call('ZSCORE', banned, ARGV[i]) then room = room - call('ZADD', passed, number(now + 600000000), ARGV[i]) end
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
