-- decide.lua decides a check, or a peek, for as many requests as times says.
-- In:   op, each, want, lease_id, counts; the rule and its port; what state.lua and keyrules.lua have read; careful
-- Out:  the reply; fit, how many of the requests fit at most; the charge, or in charges one that depends on others or is to have
--       units ahead; in others the checks of no Counters that fit; in refusing the bans that count a refusal
local cost, ok, room, till, x, y, z, reset, moved = each * times, true
local reply
if want > 0 and not counts then tail = pack('>i8i8', 0, 0) .. tail end
if exempt and counts then
  reply = pack('>Bi8i8i8', damaged and 2 or 0, 0, 0, 0)
elseif exempt then
  reply = pack('>BBi8i8i8i8i8i8', 0, 1, 0, 0, 0, 0, 0, 0)
elseif counts then
  reply = pack('>Bi8i8i8', damaged and 2 or 0, s1, s2, s3)
  --[[include charge.lua]]
else
  local quota, remaining, retry, next, delay, broken
  ok, quota, remaining, retry, next, reset, delay, x, y, z, broken, moved = take(now, cost, p1, p2, p3, p4, p5, p6, key)
  room = remaining + cost
  local head = pack('>B', (damaged or broken) and 2 or 0)
  reply = head .. pack('>Bi8i8i8i8i8i8', ok and 1 or 0, quota, remaining, retry, next, reset, delay)
  if ok then
    others = others or {}
    others[#others + 1] = { k + i, head, take, tail, key, p1, p2, p3, p4, p5, p6 }
  end
end
if times == copies then all[k + i] = reply .. tail end

if ban and op == 0 and not left and not ok and not careful and times == copies then
  refusing = refusing or {}
  refusing[#refusing + 1] = { ban, first_ban, after, within, longest }
end
if (left and not exempt) or not ok then
  local fits = not left and copies > 1 and floor(room / each) or 0
  if fits < fit then fit = fits end
elseif op == 3 then
  fit = 0
elseif not exempt and not careful and (each > 0 or want > 0) then
  if override then want = 0 end
  if n > 1 or want > 0 then
    charges = charges or {}
    charges[#charges + 1] = { k + i, name, key, index, since, lives, cost, want, room, x, y, z, till or reset, lease_id, record,
      moved, p1, p2, p3, p4, p5, p6 }
  elseif counts then
    --[[include keep.lua]]
  else
    record(key, cost, x, y, z, lease_id)
    call('PEXPIRE', key, floor(reset / 1000) + MARGIN_MS)
    wrote = true
  end
end
