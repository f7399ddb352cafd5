-- journal.lua adds an entry to a list, and removes the oldest ones. The commands are among those that other scripts need,
-- so no user needs more rights.
-- In:   KEYS[1], a list that is kept for a year after its last entry; ARGV: the entry, and how many are kept
-- Out:  an empty text
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], -ARGV[2], -1)
redis.call('PEXPIRE', KEYS[1], 31622400000)
return ''
