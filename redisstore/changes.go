package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Processes that hold something of a key in a zone that lends decide without Redis. So what changes the rules of such a
// key is noted beside the states, after the change, and these processes look there.

// changed tells all processes that the rules of a key have changed, if its zone lends. This process gives up at once
// what it holds.
func (s *operators) changed(ctx context.Context, rule *store.Rule, key string) error {
	if rule.Lend() == 0 {
		return nil
	}
	s.void(func(z, k string) bool { return k == key && z == rule.Zone() })
	return s.changedMark(ctx, rule, protocol.ChangeMark(rule.Zone(), key))
}

// changedMark tells the processes that hold anything of a change, if the zone of the rule lends.
func (s *operators) changedMark(ctx context.Context, rule *store.Rule, of uint64) error {
	if rule.Lend() == 0 {
		return nil
	}
	var mark [8]byte
	binary.BigEndian.PutUint64(mark[:], of)
	if _, err := s.evalText(ctx, lua.Change.Text(), s.keys.Changes(), string(mark[:])); err != nil {
		return fmt.Errorf("it is done, but other instances may notice that only within 20s: %w", err)
	}
	return nil
}

// changes reads the last changes.
func (s *operators) changes(ctx context.Context) (string, error) {
	text, err := s.evalText(ctx, lua.Get.Text(), s.keys.Changes())
	if err != nil {
		return "", err
	}
	if len(text) < 8 {
		return "", errors.New("redis answered changes without the time")
	}
	s.networks.noted(text[8:])
	return text[8:], nil
}
