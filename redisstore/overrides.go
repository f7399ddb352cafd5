package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Set implements [store.Overrider].
func (s *operators) Set(ctx context.Context, rule *store.Rule, key string, override store.Override) error {
	prepared, err := rule.PrepareOverride(override)
	if err != nil {
		return err
	}
	kind, tail := prepared.Wire()
	_, err = s.evalText(ctx, lua.Set.Text(), s.keys.Override(rule, key), string([]byte{kind}), prepared.For.Microseconds(), tail)
	s.forget(rule, key)
	return err
}

// Get implements [store.Overrider].
func (s *operators) Get(ctx context.Context, rule *store.Rule, key string) (store.Override, error) {
	now, text, err := s.get(ctx, s.keys.Override(rule, key))
	if err != nil {
		return store.Override{}, err
	}
	return store.ParseOverride(text, now)
}

// Clear implements [store.Overrider].
func (s *operators) Clear(ctx context.Context, rule *store.Rule, key string) error {
	return s.delete(ctx, s.keys.Override(rule, key))
}

// Unban implements [store.Overrider].
func (s *operators) Unban(ctx context.Context, rule *store.Rule, key string) error {
	_, err := s.evalText(ctx, lua.Unban.Text(), s.keys.Override(rule, key))
	err = errors.Join(err, s.delete(ctx, s.keys.Ban(rule, key)))
	s.forget(rule, key)
	return err
}

// Refusals implements [store.Lister].
func (s *operators) Refusals(ctx context.Context, rule *store.Rule, ban *store.Ban, key string) (store.Refusals, error) {
	now, text, err := s.get(ctx, s.keys.Ban(rule, key))
	return ban.Counted(banState(text), now), err
}

// get reads a key, and the time.
func (s *operators) get(ctx context.Context, name string) (now int64, text string, err error) {
	if text, err = s.evalText(ctx, lua.Get.Text(), name); err != nil {
		return 0, "", err
	}
	return link.Number(text)
}

// delete deletes a key in Redis. Keys go one by one, because a slot may migrate.
func (s *operators) delete(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	_, err := s.link.Process(ctx, name, link.Server.Process, func() redis.Cmder { return redis.NewIntCmd(ctx, "del", name) })
	return failed(err)
}

// eval runs another script than that of decisions, whose keys have one slot.
func (s *operators) eval(ctx context.Context, script string, keys []string, args ...any) ([]any, error) {
	cmd, err := s.link.Process(ctx, keys[0], link.Server.Process, func() redis.Cmder {
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
	text, err := s.link.EvalText(ctx, link.Server.Process, script, key, args...)
	return text, failed(err)
}
