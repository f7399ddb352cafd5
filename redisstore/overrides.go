package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// SetRule implements [store.Overrider].
func (s *operators) SetRule(ctx context.Context, rule *store.Rule, of store.Selector, to store.Override) error {
	return rule.WriteOverride(of, to,
		func(to *store.PreparedOverride) error { return s.writeOverride(ctx, rule, of.Key, to) },
		func(to *store.PreparedOverride) error { return s.writeNetwork(ctx, rule, of.Network, to) })
}

// writeOverride writes the override of a key. Nil removes it.
func (s *operators) writeOverride(ctx context.Context, rule *store.Rule, key string, to *store.PreparedOverride) error {
	if to == nil {
		return s.delete(ctx, s.keys.Override(rule, key))
	}
	_, err := s.evalText(ctx, lua.Set.Text(), s.keys.Override(rule, key), written(to)...)
	s.forget(rule, key)
	return err
}

// written is what a script gets to write an override: its kind, how long it holds, and the rest.
func written(to *store.PreparedOverride) []any {
	kind, tail := to.Wire()
	return []any{string([]byte{kind}), to.For.Microseconds(), tail}
}

// GetRule implements [store.Overrider].
func (s *operators) GetRule(ctx context.Context, rule *store.Rule, of store.Selector) (store.Override, error) {
	if of.IsNetwork() {
		return s.Networks(rule).Override(of.Network), nil
	}
	now, text, err := s.get(ctx, s.keys.Override(rule, of.Key))
	if err != nil {
		return store.Override{}, err
	}
	return store.ParseOverride(text, now)
}

// Unban implements [store.Overrider].
func (s *operators) Unban(ctx context.Context, rule *store.Rule, of store.Selector) error {
	return of.Unban(ctx, s, rule, func() error {
		_, err := s.evalText(ctx, lua.Unban.Text(), s.keys.Override(rule, of.Key))
		err = errors.Join(err, s.delete(ctx, s.keys.Ban(rule, of.Key)))
		s.forget(rule, of.Key)
		return err
	})
}

// Refusals implements [store.Overrider].
func (s *operators) Refusals(ctx context.Context, rule *store.Rule, ban *store.Ban, key string) (store.Refusals, error) {
	now, text, err := s.get(ctx, s.keys.Ban(rule, key))
	return ban.Counted(banState(text), now), err
}

// get reads a key, and the time.
func (s *operators) get(ctx context.Context, name string) (now int64, text string, err error) {
	if text, err = s.evalText(ctx, lua.Get.Text(), name); err != nil {
		return 0, "", err
	}
	return timed(text)
}

// timed divides what lua/get.lua answers into the time, in microseconds since 1970, and what the key has.
func timed(text string) (now int64, rest string, err error) {
	r := protocol.Reader{Rest: text}
	if now = r.Number(); r.Short {
		return 0, "", fmt.Errorf("redis answered %d bytes without a time", len(text))
	}
	return now, r.Rest, nil
}

// delete deletes a key in Redis. Keys go one by one, because a slot may migrate.
func (s *operators) delete(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	_, err := s.link.Process(ctx, name, func() redis.Cmder { return redis.NewIntCmd(ctx, "del", name) })
	return failed(err)
}

// eval runs another script than that of decisions, whose keys have one slot.
func (s *operators) eval(ctx context.Context, script string, keys []string, args ...any) ([]any, error) {
	cmd, err := s.link.Process(ctx, keys[0], func() redis.Cmder {
		all := []any{"eval", script, len(keys)}
		for _, key := range keys {
			all = append(all, key)
		}
		return redis.NewSliceCmd(ctx, append(all, args...)...)
	})
	if err != nil {
		return nil, failed(err)
	}
	return cmd.(*redis.SliceCmd).Val(), nil
}

// evalText runs a script that answers a text.
func (s *operators) evalText(ctx context.Context, script, key string, args ...any) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	cmd, err := s.link.Process(ctx, key, func() redis.Cmder { return s.link.TextCommand(ctx, script, key, args...) })
	if err != nil {
		return "", failed(err)
	}
	return cmd.(*redis.StringCmd).Val(), nil
}
