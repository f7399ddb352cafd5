-- charge.lua decides whether a cost fits for a Counter, and charges it. Only the part of a port that does this is in
-- it, and the port's parameters have the names that they have here, because a call of a function takes longer.
-- In:   name, the algorithm; now, cost, p1 to p6, s1 to s3, as ports.lua has them
-- Out:  ok, whether the cost fits; room, what there was before the charge; if it fits, x, y and z, the state after it,
--       and till, until when that is worth something
if name == 'token_bucket' or name == 'leaky_bucket' then
  --[[charge bucket.lua]]
elseif name == 'fixed_window' then
  --[[charge fixed_window.lua]]
else -- 'sliding_window_counter'
  --[[charge sliding_window_counter.lua]]
end
