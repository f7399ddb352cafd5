package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// Amount is a whole number, or a placeholder whose value is one. In JSON it is a number such
// as `100`, a placeholder such as `"{http.vars.quota}"`, or a placeholder with a fallback
// such as `"{http.vars.quota} 100"`. The fallback applies when the placeholder is empty;
// without a fallback, such requests are refused.
type Amount struct {
	// The number, or the fallback of the placeholder.
	Number int64

	// The placeholder, without braces. Default: none.
	From string

	// Whether the placeholder has a fallback. Default: false.
	Fallback bool
}

// Parse implements [option.Value].
func (a *Amount) Parse(args []string, of *option.Field) (err error) {
	number := strings.Join(args, " ")
	name, rest, ok := placeholder.Cut(number)
	*a = Amount{From: name, Fallback: rest != ""}
	switch {
	case ok && rest == "":
		return nil
	case ok && !strings.Contains(number, "} "):
		return errors.New("write a space between the placeholder and the number that replaces it if it is empty")
	case ok:
		number = rest
	}
	if a.Number, err = strconv.ParseInt(number, 10, 64); err == nil {
		return of.Within(float64(a.Number))
	}
	if strings.Contains(number, "/") {
		return fmt.Errorf("it is a rate: write rate %s, or events and window", number)
	}
	return option.ErrWrong
}

// MarshalJSON implements [json.Marshaler].
func (a Amount) MarshalJSON() ([]byte, error) { return option.Marshal(a.String()) }

// String returns the amount as a Caddyfile has it.
func (a Amount) String() string {
	switch {
	case a.From == "":
		return strconv.FormatInt(a.Number, 10)
	case !a.Fallback:
		return "{" + a.From + "}"
	}
	return fmt.Sprintf("{%s} %d", a.From, a.Number)
}

// mostDigits bounds the text of an amount, which a client may have chosen.
const mostDigits = 64

// Resolve returns the amount for a request. Errors do not show the value of the placeholder, because it may be secret.
func (a *Amount) Resolve(repl *caddy.Replacer) (int64, error) {
	if a.From == "" {
		return a.Number, nil
	}
	text := placeholder.Text(repl, a.From)
	switch {
	case text == "" && a.Fallback:
		return a.Number, nil
	case text == "":
		return 0, fmt.Errorf("{%s} is empty, and there is no fallback", a.From)
	case len(text) > mostDigits:
		return 0, fmt.Errorf("{%s} must have at most %d bytes, got %d", a.From, mostDigits, len(text))
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("{%s} is not a whole number", a.From)
	}
	return n, nil
}
