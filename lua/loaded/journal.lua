-- Made of lua/journal.lua by "make scripts". Do not edit.
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], -ARGV[2], -1)
redis.call('PEXPIRE', KEYS[1], 31622400000)
return ''
