package usage

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// MaxCost is the largest cost of a request. It has a type, because an int may have 32 bits.
const MaxCost int64 = 1_000_000_000_000

// decimal is a number in millionths.
type decimal int64

const one decimal = 1_000_000

// places is the number of decimal places of a decimal.
const places = 6

var errNumber = errors.New("not a number of a cost")

// parseWeight parses a factor such as 4, 0.1 or -0.5.
func parseWeight(text string) (decimal, error) {
	digits, negative := strings.CutPrefix(text, "-")
	_, fraction, _ := strings.Cut(digits, ".")
	n, err := parseDecimal([]byte(digits))
	if err != nil || n == 0 || n > 1000*one || len(fraction) > places || strings.ContainsAny(digits, "eE") {
		return 0, fmt.Errorf("the weight %q must be a number such as 4, 0.1 or -0.5, of at most 1000 and with at most %d decimal places", text, places)
	}
	if negative {
		n = -n
	}
	return n, nil
}

// parseDecimal parses a number of JSON from 0 to MaxCost. What is smaller than a millionth is rounded
// up.
func parseDecimal(text []byte) (n decimal, err error) {
	var digits uint64 // the significant ones
	point, used, i := 0, 0, 0
	rest, seen, fraction := false, false, false
	if len(text) > 0 && text[0] == '-' {
		i++
	}
loop:
	for ; i < len(text); i++ {
		c := text[i]
		switch {
		case c >= '0' && c <= '9':
			seen = true
			if fraction {
				point--
			}
			if used < 18 {
				digits = digits*10 + uint64(c-'0')
				if digits > 0 {
					used++
				}
			} else {
				point++
				rest = rest || c != '0'
			}
		case c == '.' && !fraction && seen:
			fraction = true
		case (c == 'e' || c == 'E') && seen:
			break loop
		default:
			return 0, errNumber
		}
	}
	if !seen {
		return 0, errNumber
	}
	if i < len(text) {
		e, err := parseExponent(text[i+1:])
		if err != nil {
			return 0, err
		}
		point += e
	}
	if digits == 0 {
		return 0, nil // also -0
	}
	if text[0] == '-' {
		return 0, errNumber
	}
	for point += places; point > 0 && digits <= uint64(decimal(MaxCost)*one); point-- {
		digits *= 10
	}
	for ; point < 0 && digits > 0; point++ {
		rest = rest || digits%10 != 0
		digits /= 10
	}
	if rest {
		digits++
	}
	if digits > uint64(decimal(MaxCost)*one) {
		return 0, errNumber
	}
	return decimal(digits), nil
}

// parseExponent parses an exponent. Far beyond any cost it does not matter how far.
func parseExponent(text []byte) (e int, err error) {
	negative := false
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		negative = text[0] == '-'
		text = text[1:]
	}
	if len(text) == 0 {
		return 0, errNumber
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, errNumber
		}
		e = min(10*e+int(c-'0'), 10_000)
	}
	if negative {
		e = -e
	}
	return e, nil
}

// roundUp returns the whole cost of a sum of products of two decimals.
func roundUp(total *big.Int) (int64, error) {
	unit := big.NewInt(int64(one) * int64(one))
	cost, rest := new(big.Int).DivMod(total, unit, new(big.Int))
	if rest.Sign() != 0 {
		cost.Add(cost, big.NewInt(1))
	}
	if !cost.IsInt64() || cost.Int64() < 0 || cost.Int64() > MaxCost {
		return 0, fmt.Errorf("the sum must be from 0 to %d, got %.40s", MaxCost, cost)
	}
	return cost.Int64(), nil
}
