-- check.lua reads a check of groups.lua.
-- In:   at, where it is; place and name, the rule and the port used last; ports, those used before
-- Out:  at, behind it; op, what to do; beside, what the key may have; index, of the key; cost; lease_id; the rule and its
--       port; want, how many units it wants charged ahead, if it does
local op, index, cost, lease_id, offset
at, op, index, cost, lease_id, offset = read(groups, 5, at)
local beside = op
if op > 3 then op = op % 4 end
if offset ~= place or op == 2 and not adjust then
  local wanted, behind
  place = offset >= 0 and offset or at
  behind, wanted, p1, p2, p3, p4, p5, p6 = read(groups, 7, place)
  if offset < 0 then at = behind end
  if wanted ~= name or op == 2 and not adjust then
    if name then
      ports = ports or {}
      ports[name] = { take, record, adjust }
    end
    name = wanted
    local made = ports and ports[name]
    if made and (op ~= 2 or made[3]) then
      take, record, adjust = made[1], made[2], made[3]
    else
      take, record, adjust = port(name, op)
    end
  end
end
local want
if beside > 15 then
  at, want = read(groups, 1, at)
  beside = beside - 16
end
