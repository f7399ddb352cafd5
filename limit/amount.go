package limit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

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

	unreadable string // the JSON, if it is not an amount
}

// MarshalJSON implements [json.Marshaler].
func (a Amount) MarshalJSON() ([]byte, error) {
	if a.From == "" {
		return json.Marshal(a.Number)
	}
	return json.Marshal(a.String())
}

// UnmarshalJSON implements [json.Unmarshaler]. It never fails: Check reports errors, because
// it knows the name of the option.
func (a *Amount) UnmarshalJSON(b []byte) error {
	*a = Amount{}
	if json.Unmarshal(b, &a.Number) == nil {
		return nil
	}
	var text string
	if json.Unmarshal(b, &text) == nil && a.parse(text) == nil {
		return nil
	}
	*a = Amount{unreadable: string(b)}
	return nil
}

// parse reads a placeholder and its fallback.
func (a *Amount) parse(text string) (err error) {
	name, rest, ok := placeholder.Cut(text)
	if !ok {
		return errors.New("not a placeholder")
	}
	a.From = name
	if rest != "" {
		a.Fallback = true
		a.Number, err = strconv.ParseInt(rest, 10, 64)
	}
	return err
}

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

// Check reports what can be known to be wrong without a request.
func (a *Amount) Check(option string) error {
	if a.unreadable != "" {
		return fmt.Errorf(`%s must be a whole number or a placeholder such as "{http.vars.quota} 100", got %s`, option, a.unreadable)
	}
	return placeholder.CheckOption(option, a.From)
}

// Resolve returns the amount for a request.
func (a *Amount) Resolve(repl *caddy.Replacer) (int64, error) {
	if a.From == "" {
		return a.Number, nil
	}
	text, err := placeholder.Value(repl, a.From, a.Fallback)
	if err != nil || text == "" {
		return a.Number, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("{%s} is not a whole number", a.From)
	}
	return n, nil
}

// parsePlaceholder reads a placeholder if the next argument is one. It reports whether a
// fallback follows.
func parsePlaceholder(d *caddyfile.Dispenser) (name string, fallback bool) {
	if !d.NextArg() {
		return "", false
	}
	name, rest, ok := placeholder.Cut(d.Val())
	if !ok || rest != "" {
		d.Prev()
		return "", false
	}
	return name, d.CountRemainingArgs() > 0
}

// ParseAmount returns a parser of a number, or of a placeholder with an optional fallback.
// Numbers are read by the parser that read returns.
func ParseAmount(d *caddyfile.Dispenser, read func(*int64) option.Parser, to *Amount) option.Parser {
	return func() (string, error) {
		placeholder, fallback := parsePlaceholder(d)
		*to = Amount{From: placeholder, Fallback: fallback}
		if placeholder == "" || fallback {
			if _, err := read(&to.Number)(); err != nil {
				return "", err
			}
		}
		return to.String(), nil
	}
}
