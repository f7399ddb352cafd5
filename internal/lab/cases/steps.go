package cases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/admin"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// steps are the first words of lines in a case that are no requests, each with what reads its arguments, and says which
// zones they name and what to do.
var steps = map[string]struct {
	expects string
	read    func(args []string) (zones []string, do func(*world) error, err error)
}{
	"after":    {aDuration, after},
	"at":       {"a time, such as 2026-12-01 or 2026-12-01T09:30 (UTC) or 2026-12-01T09:30:00+01:00", at},
	"override": {"a zone, a key, and what holds for it: a limit such as 500/1m, or exempt, or plan and its name; for 1h may follow", operate("override")},
	"ban":      {"a zone and a key; for 1h may follow", operate("ban")},
	"clear":    {"a zone and a key", operate("clear")},
}

func after(args []string) ([]string, func(*world) error, error) {
	d, err := parseSpan(strings.Join(args, " "))
	return nil, func(w *world) error { return w.moveTo(w.Micros() + d.Microseconds()) }, err
}

// at moves to a time, in UTC unless it says otherwise.
func at(args []string) ([]string, func(*world) error, error) {
	at, err := duration.ParseTime(strings.Join(args, " "), time.UTC)
	if err != nil {
		err = option.ErrWrong
	}
	return nil, func(w *world) error { return w.moveTo(at.UnixMicro()) }, err
}

// moveTo moves the time.
func (w *world) moveTo(to int64) error {
	if to < w.Micros() {
		format := func(micros int64) string { return time.UnixMicro(micros).UTC().Format(time.RFC3339Nano) }
		return fmt.Errorf("at %s is before the time of the step before, %s", format(to), format(w.Micros()))
	}
	w.MoveTo(to)
	return nil
}

// operate does to a key what an operator would.
func operate(word string) func(args []string) ([]string, func(*world) error, error) {
	return func(args []string) (zones []string, do func(*world) error, err error) {
		if len(args) < 2 {
			return nil, nil, option.ErrWrong
		}
		limit, held, ends := strings.Cut(" "+strings.Join(args[2:], " "), " for ")
		if limit = strings.TrimSpace(limit); (limit == "") == (word == "override") || ends && word == "clear" {
			return nil, nil, option.ErrWrong
		}
		set := store.Override{Kind: store.KindBanned}
		if ends {
			set.For, err = parseSpan(held)
		}
		return args[:1], func(w *world) error { return w.operate(word, args[0], args[1], limit, set) }, err
	}
}

func (w *world) operate(word, zone, text, limit string, set store.Override) error {
	z := w.zones[zone]
	key, err := z.Template.FromText(text)
	if err != nil {
		return fmt.Errorf("key %q of zone %s: %w", text, zone, err)
	}
	if !z.Overrides {
		return fmt.Errorf("zone %q has no option overrides, so operators cannot do this", zone)
	}
	ctx, rule, of := context.Background(), z.Rules()[0], store.Selector{Key: key}
	switch word {
	case "override":
		held := set.For
		if rule, set, err = admin.OverrideByText(z, limit); err != nil {
			return err
		}
		set.For = held
	case "clear":
		return errors.Join(w.store.SetRule(ctx, rule, of, store.Override{}), w.store.Unban(ctx, rule, of))
	}
	return w.store.SetRule(ctx, rule, of, set)
}
