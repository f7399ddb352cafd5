-- keep.lua writes the state of a Counter, and keeps it for the checks that follow.
-- In:   as write.lua; index, of the key
-- Out:  values
--[[include write.lua]]
values[index], wrote = pack('>i8i8i8i8I4', x, y, z, since, lives), true
