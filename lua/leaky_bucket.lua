
correct = function(_, _, turn, delta, burst, events, window, lumps, queue, longest, anchor, taken, last)
  local cost = -delta
  if queue == 0 or cost <= 0 or taken < cost or anchor < 0 or taken >= MAX_EXACT then return end
  if after(taken - cost, anchor, events, window, 0) ~= turn then return end
  return anchor, taken - cost, last
end
