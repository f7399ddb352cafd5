package config

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// Plans are different limits for classes of clients.
type Plans struct {
	// A text with placeholders whose value names the plan of a request, e.g.
	// `{http.vars.plan}`. Do not take it from anything that a client controls. Required.
	Of string `json:"of,omitempty" caddyfile:"-"`

	// The plans by name. A plan has the options of the zone that it leaves out. Required.
	Plans map[string]*Plan `json:"plans,omitempty" caddyfile:"-"`

	// The plan of requests whose plan is empty or unknown; or `reject`, and a status if it
	// is not 403, as in `"reject 404"`. Default: the zone's limit, if the zone has one.
	Default *Otherwise `json:"default,omitempty" syntax:"<plan> | reject [<status>]" default:"=required, unless the zone has a limit"`
}

// Plan is the limit of a class of clients.
type Plan struct {
	Limit

	// Whether these clients have no limit in this zone. Default: false.
	Unlimited bool `json:"unlimited,omitempty" caddyfile:"-"`
}

// Describe returns the plans as a text, given the limits of their zone. Plans that mean the same have the same text.
func (p *Plans) Describe(limits map[string]Limit) string {
	var b strings.Builder
	fmt.Fprintf(&b, "plans of %s", p.Of)
	for _, name := range slices.Sorted(maps.Keys(p.Plans)) {
		if limit, ok := limits[name]; ok {
			fmt.Fprintf(&b, ", %s %s", name, limit.Describe())
		} else {
			fmt.Fprintf(&b, ", %s unlimited", name)
		}
	}
	if p.Default != nil {
		b.WriteString(", default " + p.Default.Full(http.StatusForbidden))
	}
	return b.String()
}

// UnmarshalCaddyfile implements [caddyfile.Unmarshaler]: the text that names the plan, and the block of plans.
func (p *Plans) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	if p.Plans = make(map[string]*Plan); !d.AllArgs(&p.Of) {
		return d.Err("plan takes one text, which names the plan of a request, and the plans in a block")
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		if name == "default" {
			if err := option.Set(p, name, d.RemainingArgs()); err != nil {
				return d.WrapErr(fmt.Errorf("plan: %w", err))
			}
			continue
		}
		if p.Plans[name] != nil {
			return d.Errf("plan already specified: %s", name)
		}
		plan, words := new(Plan), d.RemainingArgs()
		p.Plans[name] = plan
		var err error
		switch opens := option.OpensBlock(d); {
		case len(words) > 0 && opens:
			err = errors.New("its options are either on its line or in a block")
		case len(words) > 0:
			err = plan.parse(words)
		case opens:
			err = option.Block(d, "plan", plan, plan.Lines(d))
		default:
			err = errors.New("it has no limit: write one such as 100/1m, or unlimited")
		}
		if err != nil {
			return d.WrapErr(fmt.Errorf("plan %s: %w", name, err))
		}
	}
	return nil
}

// parse reads "unlimited", or [<algorithm>] [<events>/<window>] [<option> <value>...]...
func (p *Plan) parse(text []string) error {
	if p.Unlimited = text[0] == "unlimited"; p.Unlimited && len(text) > 1 {
		return errUnlimited
	} else if p.Unlimited {
		return nil
	}
	known := option.Names(p)
	is := func(word string) bool { return slices.Contains(known, word) }
	if _, err := algorithms.Get(text[0]); strings.Contains(text[0], "/") {
		text = slices.Insert(text, 0, "rate")
	} else if err == nil {
		text = slices.Insert(text, 0, "algorithm")
	} else if !is(text[0]) {
		return err
	}
	for len(text) > 0 {
		end := 1
		for end < len(text) && !is(text[end]) {
			end++
		}
		if err := p.set(text[0], text[1:end]); err != nil {
			return err
		}
		text = text[end:]
	}
	return nil
}

var errUnlimited = errors.New("unlimited excludes all other options")

// ParseText parses a limit outside of a config that is written as in the line of a plan, such as 500/1m,
// "token_bucket 10/1s burst 50", or a number of events for the window of the zone.
func ParseText(text string) (p Plan, err error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return p, errors.New("limit is empty: write one such as 500/1m")
	}
	at := 0
	if _, err := algorithms.Get(words[0]); err == nil && len(words) > 1 {
		at = 1
	}
	if _, err := strconv.ParseInt(words[at], 10, 64); err == nil {
		words = slices.Insert(words, at, "events")
	}
	if err := p.parse(words); err != nil {
		return p, fmt.Errorf("limit %q: %w; write one such as 500/1m", option.Shown(text), err)
	}
	return p, nil
}

// check checks what plans a zone has, but not their limits. A normal form is what plans of the same name share. The receiver may
// be nil.
func (p *Plans) check(hasLimit bool, normal func(string) string) error {
	switch {
	case p == nil:
		return nil
	case p.Of == "":
		return errors.New("plan: of is missing: write the text that names the plan of a request, such as {http.vars.plan}")
	}
	names, seen := slices.Sorted(maps.Keys(p.Plans)), make(map[string]bool)
	for _, name := range names {
		if name == "" {
			return errors.New("plan: a plan needs a name")
		}
		if plan := p.Plans[name]; plan.Unlimited && plan.Limit != (Limit{}) {
			return fmt.Errorf("plan %q: %w", name, errUnlimited)
		}
		as := normal(name)
		if seen[as] {
			return fmt.Errorf("plan %q: in its normal form, %q, it is the same as another plan of %s: rename one", name, as, p.Of)
		}
		seen[as] = true
	}
	switch o := p.Default; {
	case len(names) == 0:
		return errors.New("plan: there are no plans")
	case o == nil && !hasLimit:
		return errors.New("plan: the default is missing: write default <plan>, or default reject 403")
	case o != nil && o.Word != Reject && !slices.Contains(names, o.Word):
		return fmt.Errorf("plan: default must be one of %s, or reject, got %q%s", strings.Join(names, ", "), o.Word, suggest.Hint(o.Word, names))
	}
	return nil
}
