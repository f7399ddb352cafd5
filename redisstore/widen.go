package redisstore

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// NoteBan implements [store.Widener].
func (s *operators) NoteBan(ctx context.Context, rule *store.Rule, network netip.Prefix, key string, left time.Duration, from int) error {
	_, err := s.widen(ctx, rule, "ban", network.String(), key, left.Microseconds(), from)
	return err
}

// NotePassed implements [store.Widener].
func (s *operators) NotePassed(ctx context.Context, rule *store.Rule, network netip.Prefix, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	args := []any{"passed", network.String()}
	for _, key := range keys {
		args = append(args, key)
	}
	_, err := s.widen(ctx, rule, args...)
	return err
}

// Widenings implements [store.Widener].
func (s *operators) Widenings(ctx context.Context, rule *store.Rule) (all store.Widenings, err error) {
	text, err := s.widen(ctx, rule, "list", "")
	if err != nil {
		return all, err
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		of := make([]int64, len(words))
		for i, word := range words {
			of[i], _ = strconv.ParseInt(word, 10, 64) // 0 for what is no number
		}
		if len(words) == 3 && words[0] == "suspect" {
			if network, err := netip.ParsePrefix(words[1]); err == nil {
				all.Suspects = append(all.Suspects, store.Suspect{Network: network, For: time.Duration(of[2]) * time.Microsecond})
			}
			continue
		}
		if len(words) != 5 {
			return all, fmt.Errorf("redis answered a widening that is not one: %q", line)
		}
		if network, err := netip.ParsePrefix(words[3]); err == nil {
			all.Decided = append(all.Decided, store.Widening{
				Network: network, Verdict: store.Verdict(of[0]), Banned: int(of[1]), Passed: int(of[2]), Left: time.Duration(of[4]) * time.Microsecond,
			})
		}
	}
	return all, nil
}

// Judge implements [store.Widener].
func (s *operators) Judge(ctx context.Context, rule *store.Rule, network netip.Prefix, by store.Widen) (store.Widening, error) {
	_, spared := by.Decide(by.From, by.Innocent+1)
	text, err := s.widen(ctx, rule, "judge", network.String(), by.From, by.Innocent, by.For.Microseconds(), spared.Microseconds())
	made := store.Widening{Network: network}
	if err != nil || text == "" {
		return made, err
	}
	if _, err := fmt.Sscan(text, (*uint8)(&made.Verdict), &made.Banned, &made.Passed); err != nil {
		return store.Widening{Network: network}, fmt.Errorf("redis answered a widening that is not one: %q", text)
	}
	switch made.Verdict {
	case store.Widened:
		made.Left = by.For
	case store.Spared:
		made.Left = spared
	}
	return made, nil
}

// BanNetwork implements [store.Widener].
func (s *operators) BanNetwork(ctx context.Context, rule *store.Rule, network netip.Prefix, ban store.Override) (bool, error) {
	return s.setNetwork(ctx, rule, network, ban, "new")
}

func (s *operators) widen(ctx context.Context, rule *store.Rule, args ...any) (string, error) {
	return s.evalText(ctx, lua.Widen, s.keys.Suspects(rule), args...)
}

var _ store.Widener = (*Store)(nil)
