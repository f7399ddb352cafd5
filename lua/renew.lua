-- renew.lua renews a lease.
-- In:   lease_id; cost; key; the rule and its port
-- Out:  the reply; write
allowed, quota, remaining, retry, next, reset, delay, x, y, z, damaged = take(now, 0, MAX_EXACT, p2, p3, p4, p5, p6, key)
if reset < y then reset = y end
unlock(key)
record(key, cost, x, y, z, lease_id)
write = true
