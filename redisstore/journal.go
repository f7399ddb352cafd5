package redisstore

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// AddToJournal implements [store.Journal].
func (s *operators) AddToJournal(ctx context.Context, entry string) error {
	if len(entry) > store.MaxJournalEntry {
		return fmt.Errorf("an entry of the journal must have at most %d bytes, got %d", store.MaxJournalEntry, len(entry))
	}
	_, err := s.evalText(ctx, lua.Journal.Text(), s.keys.Journal(), entry, store.MaxJournal)
	return err
}

// ReadJournal implements [store.Journal].
func (s *operators) ReadJournal(ctx context.Context, n int) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	key := s.keys.Journal()
	cmd, err := s.link.Process(ctx, key, link.Server.Process, func() redis.Cmder {
		return redis.NewStringSliceCmd(ctx, "lrange", key, -n, -1)
	})
	if err != nil {
		return nil, failed(err)
	}
	return cmd.(*redis.StringSliceCmd).Val(), nil
}
