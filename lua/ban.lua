-- ban.lua is the port of store/ban.go, which says what the numbers mean. Where Go returns 0 for the
-- rest of a ban, these functions return nil.
-- Out:  ban_left, which returns the rest of a ban; ban_refused, which counts a refusal, and returns the rest of the ban
--       that begins with it, the new state, and how long that is worth something

local function open(now, first, within, longest, till, since, count)
  if till < 0 or till >= MAX_EXACT or since < 0 or since >= MAX_EXACT or count < 0 or count >= MAX_EXACT then
    return 0, now, 0, 0
  end
  local level = count % 64
  count = (count - level) / 64
  if till > now then
    for _ = 1, level do first = first * 2 < longest and first * 2 or longest end
    if till > now + first then till, level = 0, 0 end
  end
  if since > now or now - since >= within then since, count = now, 0 end
  if till + longest <= now then level = 0 end
  return till, since, count, level
end

ban_left = function(now, first, within, longest, till, since, count)
  till = open(now, first, within, longest, till, since, count)
  return till > now and till - now or nil
end

ban_refused = function(now, first, after, within, longest, till, since, count)
  local level, left, life
  till, since, count, level = open(now, first, within, longest, till, since, count)
  count = count + 1
  if count >= after then
    left = first
    for _ = 1, level do left = left * 2 < longest and left * 2 or longest end
    if left < longest then level = level + 1 end
    till, count = now + left, 0
    life = left
  else
    life = since + within - now
  end
  if level > 0 and life < till + longest - now then life = till + longest - now end
  return left, till, since, count * 64 + level, life
end
