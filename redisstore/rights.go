package redisstore

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// trials are the commands that scripts need, so that each of them can be tried on a key that holds a
// string. Redis checks the right first, so that a command of lists answers WRONGTYPE if the user
// may run it. The first ones make the key, and the last one deletes it.
var trials = []string{
	"time", "set KEY 0 PX 1000",
	"setrange KEY 0 x", "get KEY", "mget KEY", "llen KEY", "lindex KEY 0", "lrange KEY 0 0", "lset KEY 0 x", "ltrim KEY 0 0",
	"rpush KEY x", "lrem KEY 0 x", "zcount KEY 0 0", "zcard KEY", "zscore KEY x", "zrangebyscore KEY 0 0",
	"zrevrangebyscore KEY 0 0", "zadd KEY 0 x", "zrem KEY x", "zremrangebyscore KEY 0 0", "pexpire KEY 1000",
	"del KEY",
}

// trialScript tries the commands, and returns those that fail, each with its error. If the key
// cannot be made, it tries no more, because others would make it.
const trialScript = `local failed = {}
for i = 1, #ARGV do
  local words = {}
  for word in string.gmatch(ARGV[i], '%S+') do words[#words + 1] = word == 'KEY' and KEYS[1] or word end
  local reply = redis.pcall(unpack(words))
  if type(reply) == 'table' and reply.err then
    failed[#failed + 1] = words[1] .. ' ' .. reply.err
    if words[1] == 'set' then break end
  end
end
return failed`

// rights finds out which commands the user may not run at any of these servers. It returns nil if that
// cannot be told.
func (s *operators) rights(ctx context.Context, masters []*node.Node) *store.Rights {
	all := new(store.Rights)
	for _, n := range masters {
		missing, known := s.lacks(ctx, n)
		if !known {
			return nil
		}
		for _, command := range missing {
			if !slices.Contains(all.Missing, command) {
				all.Missing = append(all.Missing, command)
			}
		}
	}
	return all
}

// lacks finds out which commands the user may not run at a server. In a Cluster each node has users of
// its own.
func (s *operators) lacks(ctx context.Context, n *node.Node) (missing []string, known bool) {
	key, found := s.keyAt(ctx, n)
	if !found {
		return nil, true // it has no states
	}
	args := []any{"eval", trialScript, 1, key}
	for _, trial := range trials {
		args = append(args, trial)
	}
	cmd := redis.NewStringSliceCmd(ctx, args...)
	if err := n.Process(ctx, cmd, false); err != nil {
		return forbidden(err)
	}
	for _, failed := range cmd.Val() {
		name, text, _ := strings.Cut(failed, " ")
		switch lacks := protocol.ReadError(text).LacksRight(); {
		case lacks:
			missing = append(missing, name)
		case name == "set":
			return nil, false // there is no key to try the others on
		}
	}
	_, err := n.Ask(ctx) // with evalsha
	errs := []error{err}
	if s.cluster {
		errs = append(errs, n.Process(ctx, redis.NewCmd(ctx, "asking"), false))
	}
	for _, err := range errs {
		if err != nil {
			more, _ := forbidden(err)
			missing = append(missing, more...)
		}
	}
	return missing, true
}

// commandOf finds the command in what Redis says to a user who may not run it.
var commandOf = regexp.MustCompile(`run the '([^']+)' command`)

// forbidden says which command an error says that the user may not run.
func forbidden(err error) (missing []string, known bool) {
	if found := commandOf.FindStringSubmatch(err.Error()); found != nil && node.LacksRight(err) {
		return found[1:], true
	}
	return nil, false
}

// undiscovered returns the right that the user lacks to find out where the states are; nil if it is another reason. The
// users of Sentinels are others.
func (s *operators) undiscovered(err error) *store.Rights {
	if missing, known := forbidden(err); known && s.cluster {
		return &store.Rights{Missing: missing}
	}
	return nil
}

// keyAt returns a key that a server has, for what is to be tried there.
func (s *operators) keyAt(ctx context.Context, n *node.Node) (key string, found bool) {
	for slot := range uint16(topology.Slots) {
		if owner, err := s.servers.Node(ctx, slot); err == nil && owner == n {
			return n.ProbeKey(slot), true
		}
	}
	return "", false
}
