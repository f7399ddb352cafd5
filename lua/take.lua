-- take.lua decides the checks of a call by the clock of this Redis.
--
-- In:
--   KEYS     the keys of all states, each once
--   ARGV[1]  what to decide: numbers and texts as MessagePack has them
--   ARGV[2]  is missing in a call of counters.lua; if it is 'c', that call is a careful one. In a call of
--            groups.lua it is a byte: 1 to read all keys that are strings at once, else 0; plus 4 if the call is a
--            careful one.
--
-- Most calls ask only Counters, without key rules and each key once: counters.lua decides these, and groups.lua all
-- others. Both say what ARGV[1] has.
--
-- Out: one string, with the checks in their order, as counters.lua and groups.lua say. Then there are
--   two bytes each   of counters.lua, the numbers of those checks, counted from 1, whose stored state was damaged
--   in text, each after a space: how many of the requests did not pass, and the time in seconds and microseconds
--
-- In replies and states, numbers are big-endian integers of eight bytes. Times and durations are in
-- microseconds.
--
-- If Redis refuses a call's first write, the call fails, and nothing was written. Then it is
-- sent again as a careful call, which decides and writes nothing, so that what is used up is still refused.
--
-- All of this runs for each call. Functions and tables cost time to make, so there are few of them.
if not ARGV[2] or ARGV[2] == 'c' then
  --[[include counters.lua]]
end

-- A call of a function takes room for all of its variables, and most calls need none of these. It uses none from
-- outside, because each of these would cost time.
return (function()
  --[[include groups.lua]]
end)()
