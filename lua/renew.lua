-- renew.lua renews a lease.
-- In:   lease_id; each, the cost; key; the rule and its port
-- Out:  the reply
local _, _, _, _, _, reset, _, x, y, z, broken = take(now, 0, MAX_EXACT, p2, p3, p4, p5, p6, key)
if reset < y then reset = y end
unlock(key)
record(key, each, x, y, z, lease_id)
call('PEXPIRE', key, floor(reset / 1000) + MARGIN_MS)
wrote = true
all[k + i] = pack('>B', 1 + (broken and 2 or 0))
