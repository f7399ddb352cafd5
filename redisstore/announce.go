package redisstore

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
)

// Announce implements [store.Shared].
func (s *operators) Announce(text string) { s.heartbeat.text.Store(&text) }

// Announcements implements [store.Shared].
func (s *operators) Announcements(ctx context.Context, n int) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	key := s.keys.Instances()
	cmd, err := s.link.Process(ctx, key, link.Server.Process, func() redis.Cmder {
		return redis.NewStringSliceCmd(ctx, "zrangebyscore", key, "-inf", firstMark, "limit", 0, n)
	})
	if err != nil {
		return nil, fmt.Errorf("listing the instances: %w", err)
	}
	names := cmd.(*redis.StringSliceCmd).Val()
	if len(names) == 0 {
		return nil, nil
	}
	args := []any{"mget"}
	for _, name := range names {
		args = append(args, s.keys.Announcement(name))
	}
	cmd, err = s.link.Process(ctx, key, link.Server.Process, func() redis.Cmder { return redis.NewSliceCmd(ctx, args...) })
	if err != nil {
		return nil, fmt.Errorf("reading what the instances announce: %w", err)
	}
	texts := make([]string, len(names))
	for i, text := range cmd.(*redis.SliceCmd).Val() {
		texts[i], _ = text.(string)
	}
	return texts, nil
}
