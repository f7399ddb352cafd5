-- take.lua decides checks by the clock of this Redis.
--
-- KEYS     the keys of all states, each once.
-- ARGV[1]  what to decide: numbers and texts as MessagePack has them.
-- ARGV[2]  a byte for the mode: 0, or 1 to read all keys that are strings at once; 2 is that of
--          counters.lua, and 4 is added for a careful call. The simplest calls of counters.lua have none.
--
-- In modes 0 and 1, ARGV[1] has groups. A group is
--   the number of its checks
--   the number of requests that ask exactly these checks
--   the checks
-- A check is
--   what to do: 0 decide, 1 renew a lease, 2 adjust a charge, 3 peek; plus 4 if the key may have
--     an override, plus 8 if it may be banned
--   the index of its key, from 1
--   the cost
--   the hold, a text; to adjust, three numbers of eight bytes precede the hold: when the charge was
--     made, its turn, and the delta
--   where its rule begins in ARGV[1], counted from 0, or -1 if the rule follows
--   the rule, if it follows: the algorithm's name and six parameters
--   the index of the override, if the key may have one
--   the index of the ban's state, and the four parameters of the ban, if the key may be banned
--
-- The checks of a group are charged together or not at all. All groups are decided at one
-- time, one after the other; a group of several requests is decided once for each. Renewals,
-- adjustments and peeks are groups of one check. A peek is decided like a check, but charges
-- nothing and does not count towards a ban; if it would pass, its reply is that of a cost of
-- 0, with the delay of the check. The quota in the reply to an adjustment is 1 if it has changed anything, and 0 if not.
--
-- The reply is one string. It begins with the checks, in their order. For each check of a group that
-- one request asks:
--   a byte         flags: 1 allowed, 2 the stored state was damaged and ignored, 4 exempt, 8
--                  banned, 16 the ban begins, 32 decided by the limit of an override, 64 parts
--                  of the key are lent, so the group is not decided: see lend.lua
--   numbers        quota, remaining, retry, next, reset and delay; retry is -1 for never, and
--                  for an allowed check how far ahead of the time its charge is booked,
--                  because time does not go back for a key
--   two bytes, text  with flag 32: the length of the override's limit, and the limit, as
--                  store.PreparedOverride.Encoded has it
-- For each check of a group that several requests ask: the state before, as a Counter's is stored.
-- The Go algorithms compute each request's decision from these. Then there are
--   two bytes each   the numbers of those of these checks, counted from 1 among all, whose stored state
--                    was damaged, or of whose key parts are lent: then 32768 is added
--   in text, each after a space: how many of the requests of these groups did not pass, and the
--   time in seconds and microseconds
--
-- In replies and states, numbers are big-endian integers of eight bytes. Times and durations are in
-- microseconds.
--
-- The port of an algorithm sets functions. For a Counter, whose state this script keeps as a
-- string of three integers and the second until which the key lives at least (four bytes):
--   take(now, cost, p1, .., p6, s1, s2, s3) -> allowed, quota, remaining, retry, next,
--                                              reset, delay, s1, s2, s3
-- The text of take may have a comment '[[charged allowed, remaining, till, s1, s2, s3]]', with
-- local variables or expressions: at this point it is decided whether the cost fits, remaining
-- is what there was before the charge, the state is that after it, and till is until when it is
-- worth something (if allowed). Then calls that only charge do not compute the rest. This part
-- of the text must use no functions of the port. A line '[[muldiv]]' makes muldiv known.
--   adjust(now, at, turn, delta, p1, .., p6, s1, s2, s3) -> s1, s2, s3 or nothing
-- For a Recorder or a Lender, which keep what they need under the key:
--   take(now, cost, p1, .., p6, key) -> allowed, .., delay, a, b, c, damaged
--   record(key, cost, a, b, c, hold)
--   adjust(key, now, at, turn, delta, p1, .., p6, hold) -> whether it changed anything
-- If a charge may take no more memory than it frees, in a careful call also:
--   spares(a, b, c) -> whether this charge is such a one
-- p1 is how much fits. None of these functions lets keys expire; this script does. A port may
-- set adjust only if op is 2.
--
-- Calls that only Counters decide, without key rules and each key once, have a shorter form and
-- reply: see counters.lua. Most calls are such calls.
--
-- If Redis refuses a call's first write, the call fails, and nothing was written. Then it is
-- sent again as a careful call, which first finds out whether Redis can write. If Redis
-- cannot, checks that need no write are still decided: refusals and peeks. If the reason is
-- memory, so are charges that need no more memory than their keys have. The reply then begins
-- with the numbers of the groups that were not charged but should have been (two bytes each,
-- from 1), two zero bytes, and the reason why Redis cannot write: two bytes for the length, and
-- the text. The rest is as usual; for a group that was not charged it means nothing.
--
-- plain.lua decides the simplest calls, counters.lua others that only Counters decide, and groups.lua all
-- others. All of this runs for each call, and functions and tables cost time to make. So there are few of
-- them.

--[[plain]]

local call, floor, byte, pack, unpack_struct = redis.call, math.floor, string.byte, struct.pack, struct.unpack
local read, groups = cmsgpack.unpack_limit, ARGV[1]
local mode = byte(ARGV[2])

-- In a careful call: why Redis cannot write; whether the reason is memory; the groups that
-- were not charged; and which states need memory that they do not have yet.
local careful, unable, full, uncharged, lacks, unlock = mode > 3
if careful then
  mode, uncharged, lacks = mode - 4, '', {}
  --[[wrongtype]]
  --[[careful]]
  if full then
    -- Redis refuses only a first write that needs memory. This one needs none, and the write
    -- that follows sets the key's time to live again.
    unlock = function(key) call('PEXPIRE', key, MARGIN_MS) end -- it is needed once, so it returns nil
  end
end

local time = --[[clock]] redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- The reply: the last check, all checks if there are several, and how many; the numbers of those that
-- are damaged or lent, and how many requests did not pass.
local last, all, n, noticed, refused = nil, nil, 0, '', 0

--[[counters]]

--[[groups]]

-- Making a long text twice would cost more.
local reply = last .. noticed .. (refused > 0 and ' ' .. refused .. ' ' or ' 0 ') .. time[1] .. ' ' .. time[2]
if all then
  all[n] = reply
  reply = table.concat(all, '', 1, n)
end
if careful then return uncharged .. pack('>HH', 0, unable and #unable or 0) .. (unable or '') .. reply end
return reply
