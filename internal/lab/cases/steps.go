package cases

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/admin"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// steps are the first words of lines in a case that are no requests, each with what reads the line and says what to do.
var steps = map[string]func(p *parser, s *Step) (func(*world) error, error){
	"after": func(p *parser, _ *Step) (func(*world) error, error) {
		d, err := p.duration()
		return func(w *world) error { return w.moveTo(w.Micros() + d.Microseconds()) }, err
	},
	"at":         at,
	"store":      storeIs,
	"instances":  instances,
	"override":   override,
	"ban":        override,
	"clear":      override,
	"warning":    warning,
	"no_warning": warning,
}

// layouts are the forms in which a time may be written.
var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"}

// at moves to a time, in UTC unless it says otherwise.
func at(p *parser, _ *Step) (func(*world) error, error) {
	args := strings.Join(p.RemainingArgs(), " ")
	for _, layout := range layouts {
		if at, err := time.Parse(layout, args); err == nil {
			return func(w *world) error { return w.moveTo(at.UnixMicro()) }, nil
		}
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

// storeIs says whether the store answers from here on.
func storeIs(p *parser, _ *Step) (func(*world) error, error) {
	args := strings.Join(p.RemainingArgs(), " ")
	if args != "up" && args != "down" {
		return nil, p.Errf("store must be up or down, got '%s'", args)
	}
	return func(w *world) error {
		if !w.shared {
			return fmt.Errorf("the store of the config is memory, which always answers")
		}
		w.down = args == "down"
		return nil
	}, nil
}

// instances says how many instances there are from here on.
func instances(p *parser, _ *Step) (func(*world) error, error) {
	n, err := p.number(1, maxInstances)
	return func(w *world) error { w.number = n; return nil }, err
}

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
	if _, err := w.instance(w.number); err != nil {
		return err
	}
	for _, i := range w.instances {
		s, ctx := i.main.Store.Store.(store.Overrider), context.Background()
		if err = s.SetRule(ctx, rule, of, set); err == nil && word == "clear" {
			err = s.Unban(ctx, rule, of)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// warning checks what loading the config has warned of.
func warning(p *parser, s *Step) (func(*world) error, error) {
	none, args, zone, text := s.word == "no_warning", p.RemainingArgs(), "", ""
	switch n := len(args); {
	case !none && n != 2:
		return nil, p.Errf(`warning needs the name of a zone, and a text that is in the warning`)
	case none && n > 1:
		return nil, p.Errf("no_warning takes the name of a zone, or nothing for all zones")
	case n > 0:
		zone, text = args[0], args[n-1]
		s.zones = append(s.zones, zone)
	}
	return func(w *world) error {
		var all []string
		for _, h := range w.Handlers {
			for of, warnings := range h.Warnings {
				if zone == "" || zone == of {
					all = append(all, warnings...)
				}
			}
		}
		said := strings.Join(all, "; ")
		switch {
		case none && len(all) > 0:
			return fmt.Errorf("the config warns: %s", said)
		case none, slices.ContainsFunc(all, func(warning string) bool { return strings.Contains(warning, text) }):
			return nil
		case len(all) == 0:
			return fmt.Errorf("the config warns of nothing in zone %s", zone)
		}
		return fmt.Errorf("the config warns of something else in zone %s: %s", zone, said)
	}, nil
}
