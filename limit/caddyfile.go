package limit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
)

// Options returns the options of a limit, which zones and plans have.
func Options(d *caddyfile.Dispenser, l *Limit) map[string]option.Option {
	r := &rate{d: d, limit: l}
	maxEvents := func(to *int64) option.Parser { return notRate(d, option.MholtInteger(d, "max events", to)) }
	return map[string]option.Option{
		"events":    {Label: "max events", Parse: r.or(option.Optional(&l.MaxEvents, func(to *Amount) option.Parser { return ParseAmount(d, maxEvents, to) }))},
		"window":    {Parse: r.or(ParseWindow(d, &l.Window))},
		"rate":      {Parse: r.parseRate},
		"algorithm": {Parse: r.parseAlgorithm},
		"burst":     {Parse: parseBurst(d, &l.Burst)},
		"refill":    {Parse: option.Text(d, &l.Refill)},
		"mode":      {Parse: option.Text(d, &l.Mode)},
		"align":     {Parse: option.Text(d, &l.Align)},
		"timezone":  {Parse: timezone(d, &l.Timezone)},
		"lease":     {Parse: option.Duration(d, "lease", &l.Lease)},
		"max_wait":  {Parse: option.Duration(d, "max_wait", &l.MaxWait)},
	}
}

// notRate returns a parser of events that says what to write in place of a rate.
func notRate(d *caddyfile.Dispenser, parse option.Parser) option.Parser {
	return func() (string, error) {
		if d.NextArg() {
			if text := d.Val(); isRate(text) {
				return "", d.Errf("events '%s' is a rate: write rate %s, or events and window", text, text)
			}
			d.Prev()
		}
		return parse()
	}
}

// WholeNumber returns the parser of numbers for [ParseAmount], with the option's name for
// errors.
func WholeNumber(d *caddyfile.Dispenser, name string) func(*int64) option.Parser {
	return func(to *int64) option.Parser { return option.Integer(d, name, to) }
}

// parseBurst returns a parser of a burst. As a number, 0 would look like an option that is not set, which is the
// largest burst.
func parseBurst(d *caddyfile.Dispenser, to *Amount) option.Parser {
	read := ParseAmount(d, WholeNumber(d, "burst"), to)
	return func() (string, error) {
		text, err := read()
		if err == nil && *to == (Amount{}) {
			err = d.Err("burst must be at least 1, got 0; to refuse all requests, write events 0")
		}
		return text, err
	}
}

// timezone returns a parser of the name of a time zone.
func timezone(d *caddyfile.Dispenser, to *string) option.Parser {
	read := option.Text(d, to)
	return func() (string, error) {
		if d.NextArg() {
			if err := fixedTimezone(d.Val()); err != nil {
				return "", d.WrapErr(err)
			}
			d.Prev()
		}
		return read()
	}
}

// fixedTimezone returns an error if a time zone is a placeholder.
func fixedTimezone(text string) error {
	return noPlaceholder("timezone", text, "a name such as Europe/Paris")
}

// ParsePlan parses the options of a plan, which are on its line, in a block, or both.
func ParsePlan(d *caddyfile.Dispenser, p *Plan) error {
	line := caddyfile.Segment{}
	for d.NextArg() {
		line = append(line, d.Token())
	}
	seen := make(map[string]bool)
	if err := ParsePlanLine(d, line, p, seen); err != nil {
		return err
	}
	known := Options(d, &p.Limit)
	for name := range seen {
		if o, ok := known[name]; ok {
			known[name] = option.Option{Forbidden: fmt.Sprintf("plan %s already specified", name), Parse: o.Parse}
		}
	}
	inBlock := option.OpensBlock(d)
	if err := option.Block(d, "plan", "plan ", known); err != nil {
		return err
	}
	if len(line) == 0 && !inBlock {
		return d.ArgErr()
	}
	return nil
}

// ParsePlanLine parses "unlimited", or [<algorithm>] [<events>/<window>] [<option> <value>...]...
// It adds the options that it finds to seen.
func ParsePlanLine(d *caddyfile.Dispenser, line caddyfile.Segment, p *Plan, seen map[string]bool) error {
	if len(line) == 1 && line[0].Text == "unlimited" {
		p.Unlimited = true
		return nil
	}
	if len(line) > 0 && line[0].Text == "unlimited" {
		return d.Err("plan: unlimited excludes all other options")
	}
	known := Options(d, &p.Limit)
	r := &rate{d: d, limit: &p.Limit}
	if len(line) > 0 && known[line[0].Text].Parse == nil && !strings.Contains(line[0].Text, "/") {
		if _, err := algorithms.Get(line[0].Text); err != nil {
			return d.WrapErr(fmt.Errorf("plan: %w", err))
		}
		p.Algorithm, line = line[0].Text, line[1:]
		seen["algorithm"] = true
	}
	if len(line) > 0 && strings.Contains(line[0].Text, "/") {
		if err := r.parse(line[0].Text); err != nil {
			return err
		}
		line = line[1:]
		seen["events"], seen["window"], seen["rate"] = true, true, true
	} else if len(line) > 0 && CountsSlots(p.Algorithm) && known[line[0].Text].Parse == nil {
		if err := r.parseSlots(p.Algorithm, line[0].Text); err != nil {
			return err
		}
		line = line[1:]
		seen["events"], seen["rate"] = true, true
	}
	for len(line) > 0 {
		end := 1
		for end < len(line) && known[line[end].Text].Parse == nil {
			end++
		}
		part := caddyfile.NewDispenser(line[:end])
		part.Next()
		name := part.Val()
		o, ok := Options(part, &p.Limit)[name]
		switch {
		case !ok:
			return part.Errf("unknown option of plan: '%s', must be one of %s",
				option.Shown(name), strings.Join(option.Accepted(known), ", "))
		case seen[name]:
			return part.Errf("plan %s already specified", name)
		}
		seen[name] = true
		if _, err := o.Parse(); err != nil {
			return err
		}
		line = line[end:]
	}
	return nil
}

// ParseText parses a limit outside of a config that is written as in the line of a plan, such as 500/1m,
// "token_bucket 10/1s burst 50", or a number of events for the window of the zone.
func ParseText(text string) (p Plan, err error) {
	words := strings.Fields(text)
	at := 0
	if len(words) > 1 {
		if _, err := algorithms.Get(words[0]); err == nil {
			at = 1
		}
	}
	if len(words) > 0 {
		if _, err := strconv.ParseInt(words[at], 10, 64); err == nil {
			words = slices.Insert(words, at, "events")
		}
	}
	const place = "limit"
	line := make(caddyfile.Segment, len(words))
	for i, word := range words {
		line[i] = caddyfile.Token{File: place, Line: 1, Text: word}
	}
	d := caddyfile.NewDispenser(line)
	if !d.Next() {
		return p, errors.New("limit is empty: write one such as 500/1m")
	}
	if err := ParsePlanLine(d, line, &p, make(map[string]bool)); err != nil {
		// Here is neither a plan nor a file.
		problem := strings.TrimSuffix(strings.TrimPrefix(err.Error(), "plan: "), ", at "+place+":1")
		return p, fmt.Errorf("limit %q: %s; write one such as 500/1m", text, problem)
	}
	return p, nil
}
