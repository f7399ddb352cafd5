package redisstore

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// What keys use is in shards. In a Cluster, each has a slot. A window of a zone has in each shard a list of its keys, in the
// order in which they came, and beside it a string for each of them. So a page of sums is a part of a list, and a
// sum comes once however much is added meanwhile.

const (
	clusterShards = 16

	// usageCalls is how many lists a page of sums asks for at most.
	usageCalls = 200
)

// addUsageScript adds sums of a shard, unless a batch of this number was added before. It is given all names, so that a slot
// on its way to another node refuses the whole of it. A Redis without memory refuses the first SET, so nothing is
// added then.
//
//	KEYS: the number of the last batch, the sums, the lists
//	ARGV: the number of the batch, for how long it is known, the number of sums, and of each sum its list, key, requests,
//	cost, refused ones, and for how long it is kept
const addUsageScript = `local sent = redis.pcall('GET', KEYS[1])
if type(sent) == 'string' and (tonumber(sent) or 0) >= tonumber(ARGV[1]) then return {} end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
local sums, kept = tonumber(ARGV[3]), {}
for i = 1, sums do
  local at, name = 6 * i - 2, KEYS[1 + i]
  local list, life = KEYS[1 + sums + ARGV[at]], ARGV[at + 5]
  local n, old = {0, 0, 0}, redis.pcall('GET', name)
  if not old then
    local pushed = redis.pcall('RPUSH', list, ARGV[at + 1])
    if type(pushed) == 'table' then
      redis.call('DEL', list)
      redis.call('RPUSH', list, ARGV[at + 1])
    end
  elseif type(old) == 'string' then
    local a, b, c = string.match(old, '^(-?%d+) (-?%d+) (-?%d+)$')
    if a then n = {a, b, c} end
  end
  if kept[list] ~= life then
    redis.call('PEXPIRE', list, life)
    kept[list] = life
  end
  local new = string.format('%.0f %.0f %.0f', n[1] + ARGV[at + 2], n[2] + ARGV[at + 3], n[3] + ARGV[at + 4])
  redis.call('SET', name, new, 'PX', life)
end
return {}`

// usageBatch is what a shard gets of a batch.
type usageBatch struct {
	sums, lists []string
	args        []any
}

// shardOf returns the shard of a key.
func (s *operators) shardOf(key string) int {
	return int(crc32.ChecksumIEEE([]byte(key)) % uint32(s.shards)) //nolint:gosec // there are few
}

// AddUsage implements [store.UsageKeeper].
func (s *operators) AddUsage(ctx context.Context, process string, batch int64, sums []store.Usage) error {
	if len(sums) > store.MaxUsageBatch {
		return fmt.Errorf("a batch has at most %d sums, got %d", store.MaxUsageBatch, len(sums))
	}
	now, batches := time.Now(), make([]usageBatch, s.shards)
	for i := range sums {
		u := &sums[i]
		shard := s.shardOf(u.Key)
		b, list := &batches[shard], s.keys.Usage(shard, u.Zone, int64(u.Length/time.Second), u.From.Unix())
		at := len(b.lists) - 1
		for ; at >= 0 && b.lists[at] != list; at-- {
		}
		if at < 0 {
			at, b.lists = len(b.lists), append(b.lists, list)
		}
		key := string(rune(u.Kind)) + u.Key
		b.sums = append(b.sums, list+":"+key)
		b.args = append(b.args, at+1, key, u.Requests, u.Cost, u.Refused, max(1, u.Until.Sub(now).Milliseconds()))
	}
	var errs []error
	for shard, b := range batches {
		if len(b.sums) == 0 {
			continue
		}
		names := append(append([]string{s.keys.UsageSent(shard, process)}, b.sums...), b.lists...)
		args := append([]any{batch, store.UsageBatchLife.Milliseconds(), len(b.sums)}, b.args...)
		if _, err := s.eval(ctx, addUsageScript, names, args...); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// ReadUsage implements [store.UsageKeeper].
func (s *operators) ReadUsage(ctx context.Context, q *store.UsageQuery, cursor string, n int) (sums []store.Usage, next string, err error) {
	from, shard, at, length := q.From.Unix(), 0, 0, int64(q.Length/time.Second)
	if cursor != "" {
		if _, err := fmt.Sscanf(cursor, "%d-%d-%d", &from, &shard, &at); err != nil || from < q.From.Unix() || shard < 0 || at < 0 {
			return nil, "", fmt.Errorf("%w: %q", store.ErrCursor, cursor)
		}
	}
	for calls := 0; time.Unix(from, 0).Before(q.To); {
		if calls++; calls > usageCalls || len(sums) >= n {
			return sums, fmt.Sprintf("%d-%d-%d", from, shard, at), nil
		}
		if q.Key != nil {
			shard = s.shardOf(*q.Key)
		}
		list, asked := s.keys.Usage(shard, q.Zone, length, from), n-len(sums)
		keys, err := s.keysOf(ctx, q, list, at, asked)
		if err != nil {
			return nil, "", err
		}
		if sums, err = s.readSums(ctx, sums, q, from, list, keys); err != nil {
			return nil, "", err
		}
		switch at += len(keys); {
		case q.Key == nil && len(keys) == asked: // there may be more in this list
		case q.Key == nil && shard+1 < s.shards:
			shard, at = shard+1, 0
		default:
			from, shard, at = from+length, 0, 0
		}
	}
	return sums, "", nil
}

// keysOf returns a part of a list, or the key that alone is asked for, as lists have keys.
func (s *operators) keysOf(ctx context.Context, q *store.UsageQuery, list string, at, n int) ([]string, error) {
	if q.Key != nil {
		return []string{string(rune(q.Kind)) + *q.Key}, nil
	}
	return s.strings(ctx, list, "lrange", list, at, at+n-1)
}

// readSums adds the sums of keys of a list.
func (s *operators) readSums(ctx context.Context, sums []store.Usage, q *store.UsageQuery, from int64, list string, keys []string) ([]store.Usage, error) {
	if len(keys) == 0 {
		return sums, nil
	}
	ask := make([]any, 1, len(keys)+1)
	ask[0] = "mget"
	for _, key := range keys {
		ask = append(ask, list+":"+key)
	}
	texts, err := s.strings(ctx, list, ask...)
	if err != nil {
		return nil, err
	}
	for i, text := range texts {
		numbers, ok := parseSums(text)
		if !ok || len(keys[i]) == 0 {
			continue // it is over, or damaged
		}
		sums = append(sums, store.Usage{
			Zone: q.Zone, Length: q.Length, From: time.Unix(from, 0).UTC(), Kind: store.UsageKind(keys[i][0]), Key: keys[i][1:],
			Requests: numbers[0], Cost: numbers[1], Refused: numbers[2],
		})
	}
	return sums, nil
}

func parseSums(text string) (numbers [3]int64, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != len(numbers) {
		return numbers, false
	}
	for i, part := range parts {
		var err error
		if numbers[i], err = strconv.ParseInt(part, 10, 64); err != nil {
			return numbers, false
		}
	}
	return numbers, true
}

// strings runs a command that answers texts.
func (s *operators) strings(ctx context.Context, key string, command ...any) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	cmd, err := s.link.Process(ctx, key, link.Server.Process, func() redis.Cmder { return redis.NewStringSliceCmd(ctx, command...) })
	if err != nil {
		return nil, failed(err)
	}
	return cmd.(*redis.StringSliceCmd).Val(), nil
}

var _ store.UsageKeeper = (*Store)(nil)
