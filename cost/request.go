package cost

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"

	"github.com/seed-161337e5/caddyratelimit/internal/body"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/usage"
)

// Request says what a request costs at least, as far as its body shows: by numbers in a JSON text, by its
// length, or by the sum of both. A request never costs less than the zone's cost, whatever its body says.
// The body is read before the request is decided, and reaches the upstream unchanged.
type Request struct {
	// The numbers whose sum is booked, such as `max_tokens`, as in cost_response. If a number is there
	// twice or in another case, the greatest one counts, and at least what missing says. Default: none.
	JSON []string `json:"json,omitempty"`

	// How many bytes of the body cost 1, from 0.001 to 1000000, such as 4 for a rough number of tokens.
	// Default: the length costs nothing.
	BytesPerUnit float64 `json:"bytes_per_unit,omitempty"`

	// What the numbers count for at least, from 0 to 1000000000000, if the body has none of them, or if
	// upstreams differ in what they read. They do if a number is 0, null, a fraction below 1, there twice, or
	// written in another case. Default: 0.
	Missing int64 `json:"missing,omitempty"`

	// What a request costs, from 0 to 1000000000000, if its body cannot be read. Such a body is larger
	// than max_body, is not an object of JSON in UTF-8, has a Content-Encoding or another `charset`, or has no
	// number of that range where one should be. Default: such requests are refused, with 413, 415 or 400.
	Unreadable *int64 `json:"unreadable,omitempty"`

	// How many bytes of the body are read at most, from 1 to 67108864. They are kept in memory until the
	// upstream has them, of all requests at most 268435456. Default: 1048576.
	MaxBody int64 `json:"max_body,omitempty"`

	// How long the body may take, from 100ms to 1h. A request whose body takes longer is refused with status
	// 408. Default: 10s.
	Within caddy.Duration `json:"within,omitempty"`

	fields *usage.Fields // nil without JSON
}

const (
	defaultMaxBody = 1 << 20
	mostMaxBody    = 64 << 20
	defaultWithin  = 10 * time.Second
	minWithin      = 100 * time.Millisecond
	maxWithin      = time.Hour
)

// UnmarshalJSON implements [json.Unmarshaler].
func (q *Request) UnmarshalJSON(text []byte) error {
	type alias Request
	if err := option.JSON(text, (*alias)(q), nil); err != nil {
		return fmt.Errorf("cost_request: %w", err)
	}
	return nil
}

// Compile checks the options, and fills in defaults.
func (q *Request) Compile() (err error) {
	if len(q.JSON) > 0 {
		if q.fields, err = usage.ParseFields(q.JSON); err != nil {
			return fmt.Errorf("cost_request json: %w", err)
		}
		if q.fields.HasDiscounts() {
			return fmt.Errorf("cost_request json: %s: a weight must be above 0, because clients could lower their cost", q.fields)
		}
	}
	switch {
	case q.fields == nil && q.BytesPerUnit == 0:
		return errors.New("cost_request needs json or bytes, such as json max_tokens")
	case math.IsNaN(q.BytesPerUnit) || q.BytesPerUnit < 0 || q.BytesPerUnit > 1e6 || q.BytesPerUnit != 0 && q.BytesPerUnit < 1e-3:
		return fmt.Errorf("cost_request bytes must be divided by a number from 0.001 to 1000000, got %v", q.BytesPerUnit)
	case q.Missing < 0 || q.Missing > usage.MaxCost:
		return fmt.Errorf("cost_request missing must be from 0 to %d, got %d", usage.MaxCost, q.Missing)
	case q.Missing > 0 && q.fields == nil:
		return errors.New("cost_request missing needs json: it is booked in place of its numbers")
	}
	return q.checkUnreadable()
}

// checkUnreadable checks what is done with bodies that cannot be read, and how much of a body is read and for how long. It fills
// in defaults.
func (q *Request) checkUnreadable() error {
	q.MaxBody, q.Within = cmp.Or(q.MaxBody, defaultMaxBody), cmp.Or(q.Within, caddy.Duration(defaultWithin))
	price, within := q.Unreadable, time.Duration(q.Within)
	switch {
	case price != nil && (*price < 0 || *price > usage.MaxCost):
		return fmt.Errorf("cost_request unreadable must be from 0 to %d, got %d", usage.MaxCost, *price)
	case q.MaxBody < 1 || q.MaxBody > mostMaxBody:
		return fmt.Errorf("cost_request max_body must be from 1 to %d bytes, got %d", mostMaxBody, q.MaxBody)
	case within < minWithin || within > maxWithin:
		return fmt.Errorf("cost_request within must be from %s to %s, got %s", duration.Format(minWithin), duration.Format(maxWithin), duration.Format(within))
	}
	return nil
}

// Of returns what a request costs before its response, but at least the least cost.
func (q *Request) Of(r *http.Request, least int64) (int64, *body.Refusal) {
	booked, refusal := q.read(r)
	if refusal == nil {
		return max(least, booked), nil
	}
	if q.Unreadable != nil && refusal.Status != http.StatusRequestTimeout {
		return max(least, *q.Unreadable), nil
	}
	refusal.Err = fmt.Errorf("cost_request: %w", refusal.Err)
	return 0, refusal
}

// read returns what a body costs, or why that cannot be known.
func (q *Request) read(r *http.Request) (booked int64, refusal *body.Refusal) {
	length := r.ContentLength
	var whole, text []byte
	switch {
	case q.fields != nil:
		whole, text, refusal = body.ReadJSON(r, q.MaxBody, time.Duration(q.Within))
		length = int64(len(whole))
	case length < 0:
		whole, refusal = body.Read(r, q.MaxBody, time.Duration(q.Within))
		length = int64(len(whole))
	default:
		refusal = body.CheckCoding(r)
	}
	if refusal != nil {
		return 0, refusal
	}
	if q.BytesPerUnit > 0 {
		booked = int64(min(math.Ceil(float64(length)/q.BytesPerUnit), float64(usage.MaxCost)))
	}
	if q.fields == nil {
		return booked, nil
	}
	number, err := q.number(text)
	if err != nil {
		return 0, &body.Refusal{Status: http.StatusBadRequest, Err: err}
	}
	return min(booked+number, usage.MaxCost), nil
}

// number returns the sum of the numbers in a body.
func (q *Request) number(text []byte) (int64, error) {
	switch {
	case len(text) == 0:
		return q.Missing, nil
	case text[0] != '{':
		return 0, errors.New("the body is not an object of JSON")
	}
	return q.fields.RequestCost(text, q.Missing)
}

// ParseRequest parses
//
//	cost_request [json <path>[*<weight>]...] [bytes [/<divisor>]] {
//	    missing    <cost>
//	    unreadable <cost> | reject
//	    max_body   <size>
//	    within     <duration>
//	}
func ParseRequest(d *caddyfile.Dispenser) (q *Request, err error) {
	args := d.RemainingArgs()
	if err := checkSource(d, "cost_request", args, "json", "bytes"); err != nil {
		return nil, err
	}
	q = new(Request)
	rest := args
	if i := slices.Index(args, "bytes"); i >= 0 {
		rest = args[:i]
		if err := q.parseBytes(d, args[i+1:]); err != nil {
			return nil, err
		}
	}
	if len(rest) > 0 {
		q.JSON = rest[1:]
		if _, err := usage.ParseFields(q.JSON); err != nil {
			return nil, d.Errf("cost_request json: %v", err)
		}
	}
	return q, option.Block(d, "cost_request", "cost_request ", map[string]option.Option{
		"missing":    {Parse: option.Integer(d, "cost_request missing", &q.Missing)},
		"unreadable": {Parse: func() (string, error) { return q.parseUnreadable(d) }},
		"max_body":   {Parse: option.Parsed(d, &q.MaxBody, parseSize)},
		"within":     {Parse: option.Duration(d, "cost_request within", &q.Within)},
	})
}

// parseBytes parses an optional divisor.
func (q *Request) parseBytes(d *caddyfile.Dispenser, args []string) error {
	q.BytesPerUnit = 1
	if len(args) == 0 {
		return nil
	}
	digits, divides := strings.CutPrefix(args[0], "/")
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !divides || len(args) > 1 || !(n > 0) || math.IsInf(n, 0) {
		return d.Errf("cost_request bytes takes a divisor such as /4, got '%s'; write json with its paths before bytes", strings.Join(args, " "))
	}
	q.BytesPerUnit = n
	return nil
}

// parseUnreadable parses <cost> | reject.
func (q *Request) parseUnreadable(d *caddyfile.Dispenser) (string, error) {
	text := strings.Join(d.RemainingArgs(), " ")
	if text == "" {
		return "", d.ArgErr()
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil:
		q.Unreadable = &n
	case text != "reject":
		return "", d.Errf("cost_request unreadable '%s' must be a cost, or reject alone: the status is 413, 415 or 400", text)
	}
	return text, nil
}

// parseSize parses the size of max_body.
func parseSize(text string) (int64, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n > mostMaxBody {
		return 0, fmt.Errorf("cost_request max_body '%s' must be a size such as 1MiB, up to 64MiB", text)
	}
	return int64(n), nil
}
