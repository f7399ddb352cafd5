package redisstore

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
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

// rights finds out which commands the user may not run. It returns nil if that cannot be told.
func (s *Store) rights(ctx context.Context) *store.Rights {
	key := s.keys.probe(0)
	args := []any{"eval", trialScript, 1, key}
	for _, trial := range trials {
		args = append(args, trial)
	}
	cmd, err := s.process(ctx, key, (*node.Node).Process, func() redis.Cmder { return redis.NewStringSliceCmd(ctx, args...) })
	if err != nil {
		return nil
	}
	rights := new(store.Rights)
	for _, failed := range cmd.(*redis.StringSliceCmd).Val() {
		name, text, _ := strings.Cut(failed, " ")
		switch lacks := protocol.ReadError(text).LacksRight(); {
		case lacks:
			rights.Missing = append(rights.Missing, name)
		case name == "set":
			return nil // there is no key to try the others on
		}
	}
	return rights
}
