package cost

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
	"github.com/seed-161337e5/caddyratelimit/internal/usage"
)

// Measured says that a request costs what its response takes: time or bytes, as this Caddy measures them, rounded,
// and never less than the zone's cost. Before that, what such requests have cost on average is booked.
type Measured struct {
	// What is measured: one of `upstream_time`, `response_time` or `bytes`. `upstream_time` is the milliseconds until the
	// response begins, `response_time` those until the handlers behind are done with it, and `bytes` are those of its body. Required.
	Of string `json:"of,omitempty"`

	// How many milliseconds or bytes cost 1, from 1 to 1000000000. Default: 1.
	Per int64 `json:"per,omitempty"`

	// What is booked for a request while no request has shown what it costs, from 0 to 1000000000000. Default: cost.
	First int64 `json:"first,omitempty"`

	// What a request costs at most, from 1 to 1000000000000, and not less than its cost. Default: 1000000000000.
	UpTo int64 `json:"up_to,omitempty"`
}

// The values of the option of.
const (
	UpstreamTime = "upstream_time"
	ResponseTime = "response_time"
	Bytes        = "bytes"
)

var measures = []string{UpstreamTime, ResponseTime, Bytes}

const namesOfMeasures = UpstreamTime + ", " + ResponseTime + " or " + Bytes

const maxPer = 1_000_000_000

// UnmarshalJSON implements [json.Unmarshaler].
func (m *Measured) UnmarshalJSON(text []byte) error {
	type alias Measured
	return option.JSON(text, (*alias)(m), nil)
}

// Compile checks the options, and fills in defaults.
func (m *Measured) Compile() error {
	m.Per, m.UpTo = cmp.Or(m.Per, 1), cmp.Or(m.UpTo, usage.MaxCost)
	switch {
	case m.Of == "":
		return errors.New("cost_measured: of is missing: write " + namesOfMeasures)
	case !m.IsTime() && m.Of != Bytes:
		return fmt.Errorf("cost_measured must be %s, got %q%s", namesOfMeasures, m.Of, suggest.Hint(m.Of, measures))
	case m.Per < 1 || m.Per > maxPer:
		return fmt.Errorf("cost_measured must be divided by a number from 1 to %d, got %d", maxPer, m.Per)
	case m.First < 0 || m.First > usage.MaxCost:
		return fmt.Errorf("cost_measured first must be from 0 to %d, got %d", usage.MaxCost, m.First)
	case m.UpTo < 1 || m.UpTo > usage.MaxCost:
		return fmt.Errorf("cost_measured up_to must be from 1 to %d, got %d", usage.MaxCost, m.UpTo)
	case m.First > m.UpTo:
		return fmt.Errorf("cost_measured first must be at most up_to, which is %d, got %d", m.UpTo, m.First)
	}
	return nil
}

// IsTime reports whether time is measured.
func (m *Measured) IsTime() bool { return m.Of == UpstreamTime || m.Of == ResponseTime }

// Cost returns what a request costs whose response took some time and has some bytes, and whose least cost is given.
func (m *Measured) Cost(took time.Duration, bytes, least int64) int64 {
	measured := float64(bytes)
	if m.IsTime() {
		measured = float64(took) / float64(time.Millisecond)
	}
	units := math.Round(measured / float64(m.Per))
	return m.Within(int64(min(units, float64(usage.MaxCost))), least)
}

// Within returns a cost within its bounds.
func (m *Measured) Within(cost, least int64) int64 { return min(max(cost, least), m.UpTo) }

// ParseMeasured parses
//
//	cost_measured upstream_time|response_time|bytes [/<divisor>] {
//	    first <cost>
//	    up_to <cost>
//	}
func ParseMeasured(d *caddyfile.Dispenser) (*Measured, error) {
	args := d.RemainingArgs()
	if err := checkSource(d, "cost_measured", args, measures...); err != nil {
		return nil, err
	}
	m := &Measured{Of: args[0]}
	if len(args) > 1 {
		digits, divides := strings.CutPrefix(args[1], "/")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || !divides || len(args) > 2 || n < 1 {
			return nil, d.Errf("cost_measured %s takes a divisor such as /1000, got '%s'", m.Of, strings.Join(args[1:], " "))
		}
		m.Per = n
	}
	return m, option.Block(d, "cost_measured", "cost_measured ", map[string]option.Option{
		"first": {Parse: option.Integer(d, "cost_measured first", &m.First)},
		"up_to": {Parse: option.Integer(d, "cost_measured up_to", &m.UpTo)},
	})
}
