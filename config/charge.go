package config

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/usage"
)

// Charge says what a request costs in the end, which its response decides. The cost is booked before the request is handled,
// so that a burst cannot slip through, and corrected afterwards. What exceeds the limit is a debt that delays later requests.
type Charge struct {
	// Which responses count: the responses with one of these statuses, such as `401` or `5xx`. What is booked for others is
	// given back. Default: all statuses.
	Status []string `json:"status,omitempty" syntax:"<code|class>..." default:"=all"`

	// Which responses count: the responses with all of these headers, each with one of its values, if there are any.
	// Default: all responses.
	MatchHeader http.Header `json:"match_header,omitempty" syntax:"<name> [<value>]" repeats:"true" default:"=all"`

	// The header or trailer of the response in which the upstream says what the request has cost: a whole number. It
	// replaces cost, and is removed from the response. Default: none.
	Header string `json:"header,omitempty" syntax:"<name>" default:"=none"`

	// The numbers in the body of the response that make up the cost: paths of names with dots between. Their sum replaces
	// cost, rounded up. A weight may follow a path, as in `usage.output_tokens*4`, and paths with `|` between are names of one
	// number. The body is JSON, or JSON Lines or an event stream, where the last number counts. Default: the response is not read.
	JSON []string `json:"json,omitempty" syntax:"<path>[*<weight>]..." default:"=none"`

	// What a request costs if the client or the upstream breaks the response off. `booked` (the default) is what was booked.
	// `counted` is that and one for each event of the stream so far, and `counted*4` four for each. A number from 0 to
	// 1000000000000 is the whole cost. With `json` it costs more if the response has already said so.
	BrokenOff *Fallback `json:"broken_off,omitempty" syntax:"booked|counted[*<weight>]|<n>" range:"0..1000000000000" default:"booked"`

	// What a request costs if its response ends without a number of `json`, with a status below 400: like `broken_off`, also
	// a number from 0 to 1000000000000. Default: `booked`.
	Unknown *Fallback `json:"unknown,omitempty" syntax:"booked|counted[*<weight>]|<n>" range:"0..1000000000000" default:"booked"`

	// What requests need, which [Zone.Compile] makes of the options.
	Matcher    *caddyhttp.ResponseMatcher `json:"-"` // nil if all responses count
	Fields     *usage.Fields              `json:"-"` // the numbers of the body that make up the cost; nil if none do
	CostHeader string                     `json:"-"` // the header that says the cost, in its canonical form
}

// allBooked is what requests without charge cost: what is booked.
var allBooked Charge

// SaysCost reports whether the response says what the request costs.
func (c *Charge) SaysCost() bool { return c.Header != "" || len(c.JSON) > 0 }

// Late reports whether the response decides on the charge.
func (c *Charge) Late() bool { return c.Matcher != nil || c.SaysCost() }

// compile checks the options, and makes of them what requests need.
func (c *Charge) compile() (err error) {
	switch {
	case len(c.Status) == 0 && len(c.MatchHeader) == 0 && !c.SaysCost():
		return errors.New("charge needs status, match_header, header or json: which responses count, or what they cost")
	case c.Header != "" && len(c.JSON) > 0:
		return errors.New("charge: header and json exclude each other: a request has one cost")
	case strings.IndexFunc(c.Header, placeholder.NotInFieldName) >= 0:
		return fmt.Errorf("charge: header must be the name of a header, got %q", c.Header)
	case c.BrokenOff != nil && !c.SaysCost(), c.Unknown != nil && len(c.JSON) == 0:
		return errors.New("charge: broken_off needs header or json, and unknown needs json")
	case c.BrokenOff != nil && c.BrokenOff.PerEvent > 0 && len(c.JSON) == 0:
		return errors.New("charge: broken_off counted needs json: events are counted where the body is read")
	}
	if err := NotHTTP("charge: header", c.Header); err != nil {
		return err
	}
	c.CostHeader = textproto.CanonicalMIMEHeaderKey(c.Header)
	if len(c.JSON) > 0 {
		if c.Fields, err = usage.ParseFields(c.JSON); err != nil {
			return fmt.Errorf("charge: json: %w", err)
		}
	}
	if len(c.Status) == 0 && len(c.MatchHeader) == 0 {
		return nil
	}
	c.Matcher = &caddyhttp.ResponseMatcher{Headers: c.MatchHeader}
	for name := range c.MatchHeader {
		if name == "" || name[0] == '!' || strings.IndexFunc(name, placeholder.NotInFieldName) >= 0 {
			return fmt.Errorf("charge: match_header must be the name of a header that a response has, got %q", name)
		}
	}
	for _, text := range c.Status {
		if !statusSyntax.MatchString(text) {
			return fmt.Errorf("charge: status must be a code from 200 to 599, 101, or a class from 1xx to 5xx, got '%s'", text)
		}
		code, _ := strconv.Atoi(strings.TrimSuffix(text, "xx")) // a class is its first digit
		c.Matcher.StatusCode = append(c.Matcher.StatusCode, code)
	}
	return nil
}

var statusSyntax = regexp.MustCompile("^([1-5]xx|[2-5][0-9][0-9]|101)$")

// Fallback is what a request costs if its response does not say so: `booked`, `counted`, `counted*4`, or
// a number.
type Fallback struct {
	// What a request costs in all, whatever was booked. Default: what was booked.
	Cost *int64

	// What each event of the response adds to what was booked. Default: 0.
	PerEvent float64
}

const (
	booked  = "booked"
	counted = "counted"
)

// maxPerEvent bounds PerEvent, well above the tokens of an event.
const maxPerEvent = 1000

// Parse implements [option.Value].
func (f *Fallback) Parse(args []string, of *option.Field) error {
	if *f = (Fallback{}); len(args) != 1 {
		return option.ErrWrong
	}
	if args[0] == booked {
		return nil
	}
	if word, weight, weighted := strings.Cut(args[0], "*"); word == counted {
		if !weighted {
			weight = "1"
		}
		n, err := strconv.ParseFloat(weight, 64)
		if err != nil || !(n > 0 && n <= maxPerEvent) {
			return fmt.Errorf("a weight is above 0, and at most %d", maxPerEvent)
		}
		f.PerEvent = n
		return nil
	}
	n, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return option.Nearest(args[0], booked, counted)
	}
	f.Cost = &n
	return of.Within(float64(n))
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
func (f *Fallback) MarshalJSON() ([]byte, error) { return option.Marshal(f.String()) }

// Of returns the final cost of a request, given what was booked, how many events came, and what the response has
// said so far.
func (f *Fallback) Of(booked, events, said int64) (final int64) {
	final = booked
	switch {
	case f == nil:
	case f.Cost != nil:
		final = *f.Cost
	case f.PerEvent > 0:
		final = int64(min(float64(booked)+f.PerEvent*float64(events), float64(usage.MaxCost)))
	}
	return max(final, said)
}
