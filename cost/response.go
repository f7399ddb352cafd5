// Package cost says where the cost of a request comes from, as JSON and Caddyfile have it: from what the
// response says, or from the request's body.
package cost

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
	"github.com/seed-161337e5/caddyratelimit/internal/usage"
)

// Response says where a response says what the request has cost. Its body is read as it passes, if it is
// JSON, JSON Lines or an event stream. In a stream, the last number counts.
type Response struct {
	// The numbers that make up the cost: paths of names with dots between, such as
	// `usage.output_tokens`. Their sum is the cost, rounded up. A weight may follow a path, as in
	// `usage.output_tokens*4`, and several paths with `|` between are one number that backends name
	// differently. Required.
	JSON []string `json:"json,omitempty"`

	// What a request costs if the client or the upstream breaks the response off. `booked` (the default) is
	// what was booked before. `counted` is that and one for each event of the stream so far, and `counted*4`
	// four for each. A number from 0 to 1000000000000 is the whole cost. It costs more if the response
	// has already said so.
	BrokenOff *Fallback `json:"broken_off,omitempty"`

	// What a request costs if its response ends without saying so, with a status below 400: like
	// `broken_off`, also a number from 0 to 1000000000000. Default: `booked`.
	Unknown *Fallback `json:"unknown,omitempty"`

	fields *usage.Fields
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *Response) UnmarshalJSON(text []byte) error {
	type alias Response
	if err := option.JSON(text, (*alias)(r), nil); err != nil {
		return fmt.Errorf("cost_response: %w", err)
	}
	return nil
}

// Compile checks the options.
func (r *Response) Compile() (err error) {
	if r.fields, err = usage.ParseFields(r.JSON); err != nil {
		return fmt.Errorf("cost_response json: %w", err)
	}
	return cmp.Or(r.BrokenOff.check("cost_response broken_off"), r.Unknown.check("cost_response unknown"))
}

// Fields are the numbers that make up the cost.
func (r *Response) Fields() *usage.Fields { return r.fields }

// ParseResponse parses
//
//	cost_response json <path>[*<weight>]... {
//	    broken_off booked|counted[*<weight>]|<cost>
//	    unknown    booked|counted[*<weight>]|<cost>
//	}
func ParseResponse(d *caddyfile.Dispenser) (r *Response, err error) {
	args := d.RemainingArgs()
	if err := checkSource(d, "cost_response", args, "json"); err != nil {
		return nil, err
	}
	r = &Response{JSON: args[1:]}
	if _, err := usage.ParseFields(r.JSON); err != nil {
		return nil, d.Errf("cost_response json: %v", err)
	}
	return r, option.Block(d, "cost_response", "cost_response ", map[string]option.Option{
		"broken_off": {Parse: parseFallback(d, "broken_off", &r.BrokenOff)},
		"unknown":    {Parse: parseFallback(d, "unknown", &r.Unknown)},
	})
}

// checkSource checks the first argument, which says what is read.
func checkSource(d *caddyfile.Dispenser, name string, args []string, sources ...string) error {
	if len(args) == 0 {
		return d.Errf("%s: what to read is missing: write %s %s", name, name, sources[0])
	}
	if slices.Contains(sources, args[0]) {
		return nil
	}
	hint := ""
	if similar := suggest.Nearest(args[0], sources); similar != "" {
		hint = fmt.Sprintf(" (did you mean '%s'?)", similar)
	} else if strings.Contains(args[0], ".") {
		hint = fmt.Sprintf(" (did you mean '%s json %s'?)", name, strings.Join(args, " "))
	}
	return d.Errf("%s reads %s, got '%s'%s", name, strings.Join(sources, " or "), args[0], hint)
}

// Fallback is what a request costs if its response does not say so: `booked`, `counted`, `counted*4`, or
// a number.
type Fallback struct {
	// What a request costs in all, whatever was booked. Default: what was booked.
	Cost *int64

	// What each event of the response adds to what was booked. Default: 0.
	PerEvent float64

	unreadable string // the JSON, if it is not one of these
}

const (
	booked  = "booked"
	counted = "counted"
)

// maxPerEvent bounds PerEvent, well above the tokens of an event.
const maxPerEvent = 1000

var errFallback = errors.New("not a fallback")

// parse parses the text of a fallback.
func (f *Fallback) parse(text string) error {
	word, weight, weighted := strings.Cut(text, "*")
	switch {
	case text == booked:
	case word == counted && !weighted:
		f.PerEvent = 1
	case word == counted:
		n, err := strconv.ParseFloat(weight, 64)
		if err != nil || !(n > 0 && n <= maxPerEvent) {
			return errFallback
		}
		f.PerEvent = n
	default:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return errFallback
		}
		f.Cost = &n
	}
	return nil
}

// String returns the fallback as a Caddyfile has it.
func (f *Fallback) String() string {
	switch {
	case f == nil || f.Cost == nil && f.PerEvent == 0:
		return booked
	case f.Cost != nil:
		return strconv.FormatInt(*f.Cost, 10)
	case f.PerEvent == 1:
		return counted
	}
	return counted + "*" + strconv.FormatFloat(f.PerEvent, 'f', -1, 64)
}

// MarshalJSON implements [json.Marshaler].
func (f *Fallback) MarshalJSON() ([]byte, error) {
	if f.Cost != nil {
		return strconv.AppendInt(nil, *f.Cost, 10), nil
	}
	return strconv.AppendQuote(nil, f.String()), nil
}

// UnmarshalJSON implements [json.Unmarshaler]. It never fails: check reports errors, because it knows the
// name of the option.
func (f *Fallback) UnmarshalJSON(b []byte) error {
	*f = Fallback{}
	if f.parse(strings.Trim(string(b), `"`)) != nil {
		*f = Fallback{unreadable: string(b)}
	}
	return nil
}

func (f *Fallback) check(option string) error {
	switch {
	case f == nil:
	case f.unreadable != "":
		return fmt.Errorf("%s must be booked, counted, counted*<weight> up to %d, or a cost, got %s", option, maxPerEvent, f.unreadable)
	case f.Cost != nil && (*f.Cost < 0 || *f.Cost > usage.MaxCost):
		return fmt.Errorf("%s must be from 0 to %d, got %d", option, usage.MaxCost, *f.Cost)
	}
	return nil
}

func parseFallback(d *caddyfile.Dispenser, name string, to **Fallback) option.Parser {
	return func() (string, error) {
		var arg string
		if !d.AllArgs(&arg) {
			return "", d.ArgErr()
		}
		*to = new(Fallback)
		if (*to).parse(arg) != nil {
			hint := ""
			if similar := suggest.Nearest(arg, []string{booked, counted}); similar != "" {
				hint = " (did you mean '" + similar + "'?)"
			}
			return "", d.Errf("%s '%s' must be booked, counted, counted*<weight> up to %d, or a cost%s", name, arg, maxPerEvent, hint)
		}
		return arg, nil
	}
}

// Of returns what a request costs, given what was booked, how many events came, and what the response has
// said so far.
func (f *Fallback) Of(was, events, said int64) int64 {
	switch {
	case f == nil:
	case f.Cost != nil:
		was = *f.Cost
	case f.PerEvent > 0:
		was = int64(min(float64(was)+f.PerEvent*float64(events), float64(usage.MaxCost)))
	}
	return max(was, said)
}
