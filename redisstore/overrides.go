package redisstore

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// The scripts that change settings, by the clock that decides.
const (
	clockLine = "local time = " + clockMark + redisClock + "\nlocal now = time[1] * 1000000 + time[2]\n"

	// setScript gets the kind, how long it holds in microseconds (0: without an end), and
	// what stands behind the end.
	setScript = clockLine + `
local life = tonumber(ARGV[2])
local value = ARGV[1] .. struct.pack('>i8', life > 0 and now + life or 0) .. ARGV[3]
if life > 0 then
  redis.call('SET', KEYS[1], value, 'PX', math.floor(life / 1000) + MARGIN_MS)
else
  redis.call('SET', KEYS[1], value)
end
return ''`

	// getScript returns the time and the setting.
	getScript = clockLine + `
return struct.pack('>i8', now) .. (redis.call('GET', KEYS[1]) or '')`

	// pardonScript drops the setting if it is a ban.
	pardonScript = `
local value = redis.call('GET', KEYS[1])
if value and string.byte(value) == BANNED then redis.call('DEL', KEYS[1]) end
return ''`
)

// Set implements [store.Overrider].
func (s *Store) Set(ctx context.Context, rule *store.Rule, key string, setting store.Override) error {
	own, err := rule.PrepareOverride(setting)
	if err != nil {
		return err
	}
	kind, tail := own.Wire()
	_, err = s.evalText(ctx, setScript, s.settingKey(rule, key), string([]byte{kind}), own.For.Microseconds(), tail)
	return err
}

// Get implements [store.Overrider].
func (s *Store) Get(ctx context.Context, rule *store.Rule, key string) (store.Override, error) {
	text, err := s.evalText(ctx, getScript, s.settingKey(rule, key))
	if err != nil {
		return store.Override{}, err
	}
	if len(text) < 8 {
		return store.Override{}, errors.New("redis answered no time")
	}
	return store.ParseOverride(text[8:], int64(binary.BigEndian.Uint64([]byte(text[:8]))))
}

// Clear implements [store.Overrider].
func (s *Store) Clear(ctx context.Context, rule *store.Rule, key string) error {
	return s.drop(ctx, s.settingKey(rule, key))
}

// Unban implements [store.Overrider].
func (s *Store) Unban(ctx context.Context, rule *store.Rule, key string) error {
	_, err := s.evalText(ctx, pardonScript, s.settingKey(rule, key))
	err = errors.Join(err, s.drop(ctx, s.banKey(rule, key)))
	s.denied.drop(rule.At(s.date(rule)), key)
	return err
}

// drop takes a key out of Redis. Keys go one by one, for a slot may be on its way.
func (s *Store) drop(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	_, err := s.process(ctx, name, (*lane).process, func() redis.Cmder { return redis.NewIntCmd(ctx, "del", name) })
	return err
}

// evalText runs a script that answers a text.
func (s *Store) evalText(ctx context.Context, script, key string, args ...any) (string, error) {
	return s.evalBy((*lane).process, ctx, script, key, args...)
}

// evalGuarded is evalText for requests, which do not ask a Redis that is known not to
// answer.
func (s *Store) evalGuarded(ctx context.Context, script, key string, args ...any) (string, error) {
	return s.evalBy((*lane).guarded, ctx, script, key, args...)
}

func (s *Store) evalBy(way way, ctx context.Context, script, key string, args ...any) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	cmd, err := s.process(ctx, key, way, func() redis.Cmder {
		return redis.NewStringCmd(ctx, append([]any{"eval", s.script.Load().also(script), 1, key}, args...)...)
	})
	if err != nil {
		return "", err
	}
	return cmd.(*redis.StringCmd).Val(), nil
}
