package usage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

const (
	// MaxCost is the largest cost of a request. It has a type, because an int may have 32 bits.
	MaxCost int64 = 1_000_000_000_000

	// maxNumber is how many characters a number may have, and maxExponent how many its exponent, so that none takes long.
	maxNumber, maxExponent = 48, 4

	// maxWhole is the greatest whole number up to which all parsers read the same.
	maxWhole = 1 << 53
)

// parseWeight parses a factor such as 4, 0.1 or -0.5.
func parseWeight(text string) (*big.Rat, error) {
	const most, places = 1000, 6
	digits := strings.TrimPrefix(text, "-")
	_, fraction, _ := strings.Cut(digits, ".")
	n, ok := new(big.Rat).SetString(text)
	if !ok || strings.Trim(digits, "0123456789.") != "" || len(fraction) > places ||
		n.Sign() == 0 || new(big.Rat).Abs(n).Cmp(big.NewRat(most, 1)) > 0 {
		return nil, fmt.Errorf("the weight %q must be a number such as 4, 0.1 or -0.5, "+
			"of at most %d and with at most %d decimal places", text, most, places)
	}
	return n, nil
}

// exact returns a number of JSON; nil if it is none, or too long.
func exact(text []byte) *big.Rat {
	_, exponent, _ := bytes.Cut(bytes.ToLower(text), []byte("e"))
	if len(text) > maxNumber || len(exponent) > maxExponent || !json.Valid(text) {
		return nil
	}
	n, _ := new(big.Rat).SetString(string(text)) // nil if it is none
	return n
}

// wholeNumber returns a number of JSON in its shortest form, however it is written, if it is whole and not above
// maxWhole.
func wholeNumber(text []byte) (string, bool) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		r := exact(text)
		if r == nil || !r.IsInt() || !r.Num().IsInt64() {
			return "", false
		}
		n = r.Num().Int64()
	}
	if n < -maxWhole || n > maxWhole {
		return "", false
	}
	return strconv.FormatInt(n, 10), true
}

// roundUp returns the whole cost of a sum, and whether it is one.
func roundUp(total *big.Rat) (int64, bool) {
	cost := new(big.Int).Neg(total.Num())
	cost.Neg(cost.Div(cost, total.Denom())) // Div rounds down
	if !cost.IsInt64() || cost.Sign() < 0 || cost.Int64() > MaxCost {
		return 0, false
	}
	return cost.Int64(), true
}
