-- renew.lua renews a lease.
-- In:   lease_id; cost; key; the rule and its port
-- Out:  the reply; write; stuck, whether Redis cannot write it
allowed, quota, remaining, retry, next, reset, delay, x, y, z, damaged = take(now, 0, MAX_EXACT, p2, p3, p4, p5, p6, key)
if reset < y then reset = y end
stuck = unable and not full -- a lease that exists needs no more memory
if not stuck then
  if unlock then unlock = unlock(key) end
  record(key, cost, x, y, z, lease_id)
  write = true
end
