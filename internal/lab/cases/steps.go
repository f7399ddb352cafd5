package cases

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/admin"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// steps are the first words of lines in a case that are no requests, each with what reads the line and says what to do.
var steps = map[string]func(p *parser, s *Step) (func(*world) error, error){
	"after": func(p *parser, _ *Step) (func(*world) error, error) {
		d, err := p.duration()
		return func(w *world) error { return w.moveTo(w.Micros() + d.Microseconds()) }, err
	},
	"at":       at,
	"override": override,
	"ban":      override,
	"clear":    override,
}

// at moves to a time, in UTC unless it says otherwise.
func at(p *parser, _ *Step) (func(*world) error, error) {
	args := strings.Join(p.RemainingArgs(), " ")
	if at, err := duration.ParseTime(args, time.UTC); err == nil {
		return func(w *world) error { return w.moveTo(at.UnixMicro()) }, nil
	}
	return nil, p.Errf("at needs a time, such as 2026-12-01 or 2026-12-01T09:30 (UTC) or 2026-12-01T09:30:00+01:00, got '%s'", args)
}

// moveTo moves the time.
func (w *world) moveTo(to int64) error {
	if to < w.Micros() {
		return fmt.Errorf("at %s is before the time of the step before, %s", format(time.UnixMicro(to)), format(time.UnixMicro(w.Micros())))
	}
	w.MoveTo(to)
	return nil
}

func format(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999999Z") }

// override does to a key what an operator would.
func override(p *parser, s *Step) (func(*world) error, error) {
	var zone, key string
	if !p.Args(&zone, &key) {
		return nil, p.Errf("%s needs the name of a zone and a key of it", p.word)
	}
	s.zones = append(s.zones, zone)
	set := store.Override{Kind: store.KindBanned}
	var limit []string
	for p.NextArg() {
		if p.Val() != "for" || s.word == "clear" {
			limit = append(limit, p.Val())
			continue
		}
		var err error
		p.word = "for"
		if set.For, err = p.duration(); err != nil {
			return nil, err
		}
	}
	text := strings.Join(limit, " ")
	switch {
	case s.word == "override" && text == "":
		return nil, p.Errf("override needs what holds for the key: a limit such as 500/1m, or exempt, or plan and its name")
	case s.word != "override" && text != "":
		return nil, p.Errf("'%s' is too much behind %s", text, s.word)
	}
	return func(w *world) error { return w.override(s.word, zone, key, text, set) }, nil
}

func (w *world) override(word, zone, text, limit string, set store.Override) error {
	z := w.byName[zone]
	key, err := z.Template.FromText(text)
	if err != nil {
		return fmt.Errorf("key %q of zone %s: %w", text, zone, err)
	}
	if !z.Overrides {
		return fmt.Errorf("zone %q has no option overrides, so operators cannot do this", zone)
	}
	rule, of := z.Rules()[0], store.Selector{Key: key}
	if limit != "" {
		held := set.For
		if rule, set, err = admin.OverrideByText(z, limit); err != nil {
			return err
		}
		set.For = held
	}
	if word == "clear" {
		set = store.Override{}
	}
	ctx := context.Background()
	if err := w.store.SetRule(ctx, rule, of, set); err != nil || word != "clear" {
		return err
	}
	return w.store.Unban(ctx, rule, of)
}
