-- refuse.lua counts refusals of keys that may be banned, until they are.
-- In:   refusing, as decide.lua has noted them; copies and fit: so many requests were refused
for _, b in ipairs(refusing) do
  local ban, first_ban, after, within, longest = unpack(b)
  local left, b1, b2, b3, life = nil, 0, 0, 0
  if values[ban] then b1, b2, b3 = unpack_struct('>i8i8i8', values[ban]) end
  if not ban_refused then learn_bans() end
  for _ = fit + 1, copies do
    if not left then left, b1, b2, b3, life = ban_refused(now, first_ban, after, within, longest, b1, b2, b3) end
  end
  values[ban], wrote = pack('>i8i8i8', b1, b2, b3), true
  call('SET', KEYS[ban], values[ban], 'EX', floor(life / 1000000) + MARGIN_S)
end
