package usage

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
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
// up. The scanner bounds the length of the text.
func parseDecimal(text []byte) (decimal, error) {
	mantissa, point := string(text), places
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		exponent := mantissa[i+1:]
		e, err := strconv.ParseInt(exponent, 10, 16)
		if err != nil && (errors.Is(err, strconv.ErrSyntax) || !isDigits(exponent[1:])) {
			return 0, errNumber
		}
		mantissa, point = mantissa[:i], places+int(e) // far beyond any cost it does not matter how far
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits, rest := strings.TrimLeft(whole+fraction, "0"), ""
	if whole == "" || !isDigits(digits) {
		return 0, errNumber
	}
	if point -= len(fraction); point < 0 {
		keep := max(0, len(digits)+point)
		digits, rest = digits[:keep], strings.Trim(digits[keep:], "0")
	}
	const most = uint64(MaxCost) * uint64(one)
	n, err := strconv.ParseUint("0"+digits, 10, 64)
	for ; point > 0 && n > 0 && n <= most; point-- {
		n *= 10
	}
	if rest != "" {
		n++
	}
	if err != nil || negative && n > 0 || n > most {
		return 0, errNumber
	}
	return decimal(n), nil
}

func isDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }

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
