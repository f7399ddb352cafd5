package algorithms

import "math/bits"

// mulDiv returns a*b/c rounded down, exactly, however large the product is. It requires
// a, b >= 0, c > 0 and a quotient below 2^63. Its Lua port, in muldiv.lua, uses pairs of
// doubles.
func mulDiv(a, b, c int64) int64 {
	q, _ := mulDivRem(a, b, c)
	return q
}

// mulDivUp is mulDiv rounded up.
func mulDivUp(a, b, c int64) int64 {
	q, r := mulDivRem(a, b, c)
	return q + min(r, 1)
}

func mulDivRem(a, b, c int64) (int64, int64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi == 0 {
		return int64(lo / uint64(c)), int64(lo % uint64(c))
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	return int64(q), int64(r)
}

// gcd returns the greatest common divisor of a and b, which must not both be 0.
func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
