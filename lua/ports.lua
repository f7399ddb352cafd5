-- ports.lua makes the functions of an algorithm: its port.
-- In:   name, the algorithm; op, what to do (2 is to adjust a charge); careful, whether nothing
--       is to be written; redis, call, floor, the functions of wrongtype.lua
-- Out:  take, record and adjust, as far as the algorithm has them
--
-- For a Counter, whose state the scripts keep as a string of three integers, when it began, and the second until which
-- the key lives at least (four bytes):
--   take(now, cost, p1, .., p6, s1, s2, s3) -> allowed, remaining before the charge, till, and the state after it; till
--                                              is until when that is worth something
--   adjust(now, at, turn, delta, p1, .., p6, s1, s2, s3) -> s1, s2, s3 or nothing
-- For a Recorder or a Leaser, which keep what they need under the key:
--   take(now, cost, p1, .., p6, key) -> allowed, quota, remaining, retry, next, reset, delay, a, b, c, damaged
--   record(key, cost, a, b, c, lease_id)
--   adjust(key, now, at, turn, delta, p1, .., p6, lease_id) -> whether it changed anything
-- p1 is how much fits. None of these functions lets keys expire; the scripts do. A port may set adjust only if op is 2.
--
-- The text of a Counter's take is also in charge.lua, so it must return once, at its end, and use no functions of the
-- port; a line '[[muldiv]]' makes muldiv known there.
if name == 'token_bucket' or name == 'leaky_bucket' then
  --[[include muldiv.lua]]
  --[[include bucket.lua]]
elseif name == 'fixed_window' then
  --[[include fixed_window.lua]]
elseif name == 'sliding_window_counter' then
  --[[include muldiv.lua]]
  --[[include sliding_window_counter.lua]]
elseif name == 'sliding_window_log' then
  --[[include sliding_window_log.lua]]
elseif name == 'concurrency' then
  --[[include concurrency.lua]]
end
