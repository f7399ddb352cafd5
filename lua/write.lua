-- write.lua writes the state of a Counter.
-- In:   key; x, y, z; since, when the state began; till, until when they are worth something; lives, the second until
--       which the key lives at least, 0 if it does not exist; now; span and text, the expiry that was set last, and its text
-- Out:  span and text; lives
-- The last four bytes of a state are the second until which the key lives. As long as that suffices,
-- the key keeps its expiry, because setting one is slow. So a new expiry is later than needed: by
-- up to a quarter, and for a key that has come back by half, by some seconds at least and a day
-- at most. Expiries of new keys are rounded, and their text is kept, because formatting a number
-- is slow. From 2106 on, when four bytes are too few, the expiry is set with every charge.
local need = till / 1000000 + MARGIN
if lives >= need then
  call('SETRANGE', key, '0', pack('>i8i8i8i8', x, y, z, since))
else
  local seconds = (now - now % 1000000) / 1000000
  local life = need - need % 1 + 1 - seconds
  if lives > 0 then
    life = life + (life < 172800 and (life - life % 2) / 2 or 86400) + 16
  else
    life = life + (life - life % 8) / 8 + 1
    if life > 1024 then life = life + 128 - life % 128 elseif life > 64 then life = life + 8 - life % 8 end
  end
  if life ~= span then span, text = life, tostring(life) end
  lives = seconds + life
  call('SET', key, pack('>i8i8i8i8I4', x, y, z, since, lives), 'EX', text)
end
