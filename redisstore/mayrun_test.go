package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestMayHaveRun classifies errors that are not easily met, in the words of several versions, and
// errors of a store that was not asked.
func TestMayHaveRun(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"LOADING Redis is loading the dataset in memory",
		"OOM command not allowed when used memory > 'maxmemory'. script: 1f, on @user_script:205.",
		"ERR Error running script (call to f_1f): @user_script:9: -OOM command not allowed when used memory >",
		"ERR Error running script (call to f_1f): @user_script:9: @user_script: 9: -READONLY You can't write a",
		"NOPERM User limiter has no permissions to run the 'evalsha' command",
		"NOPERM this user has no permissions to run the 'evalsha' command or its subcommand",
		"WRONGPASS invalid username-password pair or user is disabled.",
		"ERR AUTH <password> called without any password configured for the default user.",
		"ERR max number of clients reached",
		"NOSCRIPT No matching script. Please use EVAL.",
		"TRYAGAIN Multiple keys request during rehashing of slot",
		"CLUSTERDOWN Hash slot not served",
		"CROSSSLOT Keys in request don't hash to the same slot",
		"MOVED 3999 127.0.0.1:6381",
		"ASK 3999 127.0.0.1:6381",
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
	} {
		if node.MayHaveRun(reply(text)) {
			t.Errorf("%s: it did not run", text)
		}
	}
	for _, text := range []string{
		"NOPERM User limiter has no permissions to run the 'set' command script: 1f, on @user_script:205.",
		"ERR The user executing the script can't run this command or subcommand script: 1f, on @user_script:205.",
		"ERR The user executing the script can't run this command or subcommand",
		"ERR ACL failure in script: User limiter has no permissions to run the 'set' command script: 1f, on @user_script:9.",
		"ERR Error running script (call to f_1f): @user_script:9: -NOPERM this user has no permissions to run",
		"ERR Error running script (call to f_1f): @user_script:9: WRONGTYPE Operation against a key",
		"WRONGTYPE Operation against a key holding the wrong kind of value script: 1f, on @user_script:9.",
		"ERR Error running script (call to f_1f): @user_script:9: Script killed by user with SCRIPT KILL...",
		"ERR upstream failure", // from a proxy
		"UNBLOCKED the client",
		"",
	} {
		if !node.MayHaveRun(reply(text)) {
			t.Errorf("%q: it may have run", text)
		}
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("%w: %w", store.ErrUnavailable, context.DeadlineExceeded), false},
		{store.ErrClosed, false},
		{redis.ErrPoolTimeout, false},
		{context.DeadlineExceeded, true},
		{io.EOF, true},
		{redis.Nil, true},
		{errors.New("redis answered what cannot be"), true},
	} {
		if node.MayHaveRun(c.err) != c.want {
			t.Errorf("%v: may have run is %v", c.err, !c.want)
		}
	}
	server := redistest.Start(t, redistest.WithTLS(true))
	for name, options := range map[string]redisstore.Options{
		"nobody there":   {Address: "127.0.0.1:1"},
		"no such socket": {Address: "unix//nonexistent/socket"},
		"wrong CA":       {Address: server.TLSAddr(), TLS: &redisstore.TLS{}},
	} {
		if err := attempt(open(t, options), hourly(t)); err == nil || node.MayHaveRun(err) {
			t.Errorf("%s: nothing was sent, but it may have run: %v", name, err)
		}
	}
	s := open(t, redisstore.Options{Address: server.Addr()})
	for name, script := range map[string]string{
		"half-way": "redis.call('SET', KEYS[1], 'x') return redis.call('LPUSH', KEYS[1], 'y')",
		"nonsense": "return 'yes'",
	} {
		s.SetScript(script)
		if err := attempt(s, hourly(t)); err == nil || !node.MayHaveRun(err) {
			t.Errorf("%s: it ran: %v", name, err)
		}
	}
}
