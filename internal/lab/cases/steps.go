package cases

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// steps are the first words of lines in a case that are no requests, each with what reads its arguments, and says which
// zones they name and what to do.
var steps = map[string]struct {
	expects string
	read    func(args []string) (zones []string, do func(*world) error, err error)
}{
	"after": {aDuration, after},
	"at":    {"a time, such as 2026-12-01 or 2026-12-01T09:30 (UTC) or 2026-12-01T09:30:00+01:00", at},
	"ban":   {"a zone and a key", ban},
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

// ban bans a key as an operator would.
func ban(args []string) ([]string, func(*world) error, error) {
	if len(args) != 2 {
		return nil, nil, option.ErrWrong
	}
	return args[:1], func(w *world) error {
		z := w.Zones[args[0]]
		key, err := z.Template.FromText(args[1])
		switch {
		case err != nil:
			return fmt.Errorf("key %q of zone %s: %w", args[1], z.Name, err)
		case !z.Overrides:
			return fmt.Errorf("zone %q has no option overrides, so operators cannot do this", z.Name)
		}
		return w.store.SetRule(context.Background(), z.Rules()[0], store.Selector{Key: key}, store.Override{Kind: store.KindBanned})
	}, nil
}
