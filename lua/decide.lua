-- decide.lua decides a check, or a peek, for as many requests as times says. If that is 0, the decision has been made,
-- and the reply is to be that of a cost of 0.
-- In:   op, cost, want, lease_id; the rule and its port; key, state, s1 to s3, and what keyrules.lua has read; several; careful
-- Out:  the reply, or quota is nil; pass, whether no check is refused; fit, how many of the requests fit at most; write,
--       x, y and z; or in charges what is to be recorded; in aheads what may be charged ahead
local broken, moved, _
allowed, quota, remaining, retry, next, reset, delay, x, y, z, broken, moved =
  take(now, cost * (times > 0 and times or 1), p1, p2, p3, p4, p5, p6, s1, s2, s3)
damaged = damaged or broken

if ban and op == 0 and not left and not allowed and round == 1 and not careful then
  local life
  left, ban.x, ban.y, ban.z, life = ban_refused(now, first_ban, after, within, longest, ban.x, ban.y, ban.z)
  ban.till = now + life
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

local ahead = want and want > 0 and allowed and op == 0 and not override and not careful
if ahead then
  aheads = aheads or {}
  aheads[#aheads + 1] = { k + i, want, cost * times, remaining + cost * times, state or key, name, take, x, y, z, moved or 0,
    p1, p2, p3, p4, p5, p6 }
end

local undo = false -- the state before the charge, for round 2
if not allowed then
  pass = false
  local fits = several and floor(remaining / cost) or 0
  if fits < fit then fit = fits end
  if times == 0 then quota = nil end -- it keeps the reply of the first round
elseif times == 0 or op == 3 then
  undo = nil
  local held = op == 3 and delay or 0
  allowed, quota, remaining, retry, next, reset = take(now, 0, p1, p2, p3, p4, p5, p6, s1, s2, s3)
  delay = held
elseif (cost > 0 or ahead and record) and not careful then
  if not record then
    write, undo = true, n > 1 and { s1, s2, s3, state.till }
  elseif n > 1 or ahead then
    charges = charges or {}
    charges[#charges + 1] = { record, key, cost, x, y, z, lease_id, reset }
  else
    write = true
    record(key, cost, x, y, z, lease_id)
  end
end
if n > 1 and not record and undo ~= nil then before[index] = undo end
