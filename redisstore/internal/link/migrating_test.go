package link_test

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// number is how a script answers a number.
func number(n int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }

// overrideText is how a script answers the time and an override.
func overrideText(t *testing.T, rule *store.Rule, o store.Override, now int64) string {
	t.Helper()
	prepared, err := rule.PrepareOverride(o)
	if err != nil {
		t.Fatal(err)
	}
	kind, tail := prepared.Wire()
	until := int64(0)
	if o.For > 0 {
		until = now + o.For.Microseconds()
	}
	return number(now) + string(kind) + number(until) + tail
}

// TestMigratingKey: while a slot migrates, a check is decided step by step: the override, the ban, the state, and the ban
// that begins. Each step that fails fails the check, and what a step decides needs no more of them.
func TestMigratingKey(t *testing.T) {
	const now, minute = 1_000_000_000, 60_000_000
	full := checkOf(t, "fixed_window")
	none, exempt := number(now), overrideText(t, full.Rule, store.Override{Kind: store.KindExempt}, now)
	forAMinute, forever := overrideText(t, full.Rule, store.Override{Kind: store.KindBanned, For: time.Minute}, now), overrideText(t, full.Rule, store.Override{Kind: store.KindBanned}, now)
	for name, c := range map[string]struct {
		texts   []string
		fates   []fate
		cost    int64
		peek    bool
		scripts int // that are run
		state   int // calls about the state
		left    int64
		want    algorithms.Decision // what matters of it
		failed  bool
	}{
		"no rules hold":            {texts: []string{none, number(0)}, cost: 1, scripts: 2, state: 1, left: 9, want: algorithms.Decision{Allowed: true}},
		"a damaged override":       {texts: []string{none + "?", number(0)}, cost: 1, scripts: 2, state: 1, left: 9, want: algorithms.Decision{Allowed: true}},
		"exempt":                   {texts: []string{exempt}, cost: 99, scripts: 1, left: 10, want: algorithms.Decision{Allowed: true, Exempt: true}},
		"banned by an operator":    {texts: []string{forAMinute}, cost: 1, scripts: 1, state: 1, left: 10, want: algorithms.Decision{Banned: true, RetryAfter: time.Minute}},
		"banned forever":           {texts: []string{forever}, cost: 1, scripts: 1, state: 1, left: 10, want: algorithms.Decision{Banned: true, RetryAfter: algorithms.Never}},
		"banned by refusals":       {texts: []string{none, number(minute)}, cost: 1, scripts: 2, state: 1, left: 10, want: algorithms.Decision{Banned: true, RetryAfter: time.Minute}},
		"refused":                  {texts: []string{none, number(0), number(0)}, cost: 11, scripts: 3, state: 1, left: 10, want: algorithms.Decision{RetryAfter: algorithms.Never}},
		"a ban begins":             {texts: []string{none, number(0), number(minute)}, cost: 11, scripts: 3, state: 1, left: 10, want: algorithms.Decision{Banned: true, BanBegins: true, RetryAfter: algorithms.Never}},
		"a peek counts no refusal": {texts: []string{none, number(0)}, cost: 11, peek: true, scripts: 2, state: 1, left: 10, want: algorithms.Decision{RetryAfter: algorithms.Never}},
		"no time":                  {texts: []string{"1234567"}, cost: 1, scripts: 1, left: 10, failed: true},
		"no number":                {texts: []string{none, ""}, cost: 1, scripts: 2, left: 10, failed: true},
		"the override is lost":     {fates: []fate{{err: io.EOF}}, cost: 1, scripts: 1, left: 10, failed: true},
		"the ban is lost":          {texts: []string{none}, fates: []fate{{}, {err: io.EOF}}, cost: 1, scripts: 2, left: 10, failed: true},
		"the state is lost":        {texts: []string{none, number(0)}, fates: []fate{{}, {}, {err: io.EOF, runs: true}}, cost: 1, scripts: 2, state: 1, left: 9, failed: true},
	} {
		b := newBench(t)
		b.texts = c.texts
		b.will(append([]fate{{err: said("TRYAGAIN Multiple keys request during rehashing of slot")}}, c.fates...)...)
		check := full
		check.Cost, check.Peek = c.cost, c.peek
		check.KeyRules = &store.KeyRules{Overrides: true, Ban: &store.Ban{For: time.Minute, After: 3, Within: time.Minute}}
		var decisions [1]algorithms.Decision
		err := b.Take(t.Context(), []store.Check{check}, decisions[:])
		if failed := err != nil; failed != c.failed || len(c.fates) > 0 && !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
		d := decisions[0]
		got := algorithms.Decision{Allowed: d.Allowed, Exempt: d.Exempt, Banned: d.Banned, BanBegins: d.BanBegins, RetryAfter: d.RetryAfter}
		if got != c.want {
			t.Errorf("%s: %+v", name, d)
		}
		if scripts, state := len(b.got("ProcessIfReady")), len(b.got("Do"))-1; scripts != c.scripts || state != c.state || b.left(t, full) != c.left {
			t.Errorf("%s: %d scripts and %d calls about the state, %d are left", name, scripts, state, b.left(t, full))
		}
	}
}
