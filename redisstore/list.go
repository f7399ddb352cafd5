package redisstore

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// scanCount is how many keys a step of SCAN looks at, and maxScans how many steps a page takes
	// at most. So Redis never waits long for a list.
	scanCount = 1000
	maxScans  = 100

	// listedPerCall is how many keys a call reads. With the longest notes, a reply is half a megabyte.
	listedPerCall = 250
)

// Overrides implements [store.Overrider].
func (s *operators) Overrides(ctx context.Context, rule *store.Rule, cursor string, n int) ([]store.Listed, string, error) {
	return s.list(ctx, s.keys.Override(rule, ""), cursor, n, store.ParseOverride)
}

// Bans implements [store.Overrider].
func (s *operators) Bans(ctx context.Context, rule *store.Rule, ban *store.Ban, cursor string, n int) ([]store.Listed, string, error) {
	return s.list(ctx, s.keys.Ban(rule, ""), cursor, n, func(value string, now int64) (o store.Override, _ error) {
		if left := ban.Left(banState(value), now); left > 0 {
			o = store.Override{Kind: store.KindBanned, For: time.Duration(left) * time.Microsecond}
		}
		return o, nil
	})
}

// banState reads the state of a ban. One that is damaged counts as none.
func banState(value string) algorithms.State {
	r := protocol.Reader{Rest: value}
	if state := r.State(); !r.Short && r.Rest == "" {
		return state
	}
	return algorithms.State{}
}

// list scans all masters, one after the other, for the names that differ from that of the empty
// key only in the key. A cursor has the number of the master and Redis's own cursor.
func (s *operators) list(ctx context.Context, empty, cursor string, n int, parse func(string, int64) (store.Override, error)) (keys []store.Listed, next string, err error) {
	master, at := 0, uint64(0)
	if cursor != "" {
		if _, err := fmt.Sscanf(cursor, "%d-%d", &master, &at); err != nil || master < 0 {
			return nil, "", fmt.Errorf("%w: %q", store.ErrCursor, cursor)
		}
	}
	head, tail := string(s.keys)+":{", strings.TrimPrefix(empty, string(s.keys)+":{*")
	pattern := globEscape(head) + "*" + globEscape(tail)
	masters := s.servers.Masters()
	for range maxScans {
		if len(keys) >= n || master >= len(masters) {
			break
		}
		names, following, err := s.scan(ctx, masters[master], at, pattern)
		if err != nil {
			return nil, "", err
		}
		texts, err := s.texts(ctx, masters[master], names)
		if err != nil {
			return nil, "", err
		}
		for i, name := range names {
			listed, err := readListed(texts[i], strings.TrimSuffix(strings.TrimPrefix(name, head), tail), parse)
			if err != nil {
				return nil, "", err
			}
			if listed.Override.Kind != store.KindNone {
				keys = append(keys, listed)
			}
		}
		if at = following; at == 0 {
			master++
		}
	}
	if master >= len(masters) {
		return keys, "", nil
	}
	return keys, strconv.Itoa(master) + "-" + strconv.FormatUint(at, 10), nil
}

// scan takes one step of SCAN.
func (s *operators) scan(ctx context.Context, from *node.Node, at uint64, pattern string) ([]string, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	cmd := redis.NewScanCmd(ctx, nil, "scan", at, "match", pattern, "count", scanCount)
	if err := from.Process(ctx, cmd, false); err != nil {
		return nil, 0, fmt.Errorf("listing keys: %w", err)
	}
	names, following := cmd.Val()
	return names, following, nil
}

// texts reads what keys of a master have, as lua/get.lua answers it. A key whose slot has moved meanwhile is read where it is.
func (s *operators) texts(ctx context.Context, from *node.Node, names []string) (texts []string, err error) {
	for some := range slices.Chunk(names, listedPerCall) {
		for i, cmd := range s.getAll(ctx, from, some) {
			text, err := cmd.(*redis.StringCmd).Val(), node.Advise(cmd.Err(), !s.cluster)
			if node.Failure(err) == store.FailureCluster {
				text, err = s.evalText(ctx, lua.Get.Text(), some[i])
			}
			if err != nil {
				return nil, failed(err)
			}
			texts = append(texts, text)
		}
	}
	return texts, nil
}

// getAll reads keys with one call. Each has its own error.
func (s *operators) getAll(ctx context.Context, from *node.Node, names []string) []redis.Cmder {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	cmds := make([]redis.Cmder, len(names))
	for i, name := range names {
		cmds[i] = s.link.TextCommand(ctx, lua.Get.Text(), name)
	}
	from.ProcessAll(ctx, cmds...)
	return cmds
}

// readListed reads what a key has.
func readListed(text, tag string, parse func(string, int64) (store.Override, error)) (listed store.Listed, err error) {
	now, text, err := timed(text)
	if err != nil {
		return listed, err
	}
	if listed.Override, err = parse(text, now); err != nil {
		return store.Listed{}, nil // a damaged one has no effect
	}
	switch {
	case tag == "*":
	case strings.HasPrefix(tag, "#"):
		listed.Key, listed.Unknown = tag, true
	default:
		if listed.Key, err = url.PathUnescape(tag); err != nil {
			listed.Key, listed.Unknown = tag, true
		}
	}
	return listed, nil
}

// globEscape escapes what a pattern of SCAN would read as more than itself.
func globEscape(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(text)
}

// Interface guards
var _ store.Overrider = (*Store)(nil)
