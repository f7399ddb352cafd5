-- muldiv.lua is a function for the ports. It returns a*b/c, rounded down and rounded up. It is exact even if the product exceeds
-- 2^53: then a product is a sum of two doubles (T. J. Dekker, "A floating-point technique for
-- extending the available precision", Numer. Math. 18, 1971).
local function muldiv(a, b, c)
  local p = a * b
  local q = math.floor(p / c)
  if p < MAX_EXACT then return q, q * c < p and q + 1 or q end
  local function error_of(x, y, xy)
    local u, v = 134217729 * x, 134217729 * y
    local xh, yh = u - (u - x), v - (v - y)
    local xl, yl = x - xh, y - yh
    return ((xh * yh - xy) + xh * yl + xl * yh) + xl * yl
  end
  local qc = q * c
  local r = (p - qc) + (error_of(a, b, p) - error_of(q, c, qc))
  while r < 0 do q, r = q - 1, r + c end
  while r >= c do q, r = q + 1, r - c end
  return q, r > 0 and q + 1 or q
end
