-- check.lua reads a check of groups.lua.
-- In:   at, where it is; place and name, the rule used last; ports, those used before
-- Out:  at, behind it; op, what to do; beside, what the key may have; counts, whether the rule is that of a Counter; index, of
--       the key; each, the cost; lease_id; the rule, and its port, unless a Counter is to decide; want, how many units it
--       wants charged ahead
local op, index, each, lease_id, offset
at, op, index, each, lease_id, offset = read(groups, 5, at)
local beside, counts = op, op > 31
if counts then beside = beside - 32 end
if op > 3 then op = op % 4 end
if offset ~= place then
  local behind
  place = offset >= 0 and offset or at
  behind, name, p1, p2, p3, p4, p5, p6 = read(groups, 7, place)
  if offset < 0 then at = behind end
end
local take, record, adjust
if not counts or op == 2 then
  local wanted = op == 2 and name .. ' 2' or name
  ports = ports or {}
  if not ports[wanted] then ports[wanted] = { port(name, op) } end
  take, record, adjust = unpack(ports[wanted], 1, 3)
end
local want = 0
if beside > 15 then
  at, want = read(groups, 1, at)
  beside = beside - 16
end
