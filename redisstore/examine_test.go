//go:build deep

package redisstore_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestExamine: what keeps a Redis from deciding is found by its name, and an examination leaves
// nothing behind.
func TestExamine(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithPassword("right"), redistest.WithTLS(false), redistest.WithArgs("--maxmemory", "100mb"),
		redistest.WithUser("least", "p", leastACL(t)...),
		redistest.WithUser("copied", "p", append(leastACL(t), redistest.OptionalRights...)...),
		redistest.WithUser("noeval", "p", "~*", "+@all", "-eval", "-evalsha"),
		redistest.WithUser("elsewhere", "p", "~other:*", "+@all"),
	)
	replica := redistest.Start(t)
	if err := replica.Admin().ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	full := redistest.Start(t, redistest.WithArgs("--maxmemory-policy", "noeviction"))
	fill(full)
	dead := redistest.Start(t)
	dead.Kill()
	for name, c := range map[string]struct {
		address, user, password string
		tls                     *redisstore.TLS
		trouble                 string
		described               bool
	}{
		"works":           {address: server.Addr(), password: "right", described: true},
		"least rights":    {address: server.Addr(), user: "least", password: "p"},
		"the line copied": {address: server.Addr(), user: "copied", password: "p", described: true},
		"no eval":         {address: server.Addr(), user: "noeval", password: "p", trouble: store.TroubleRights},
		"other keys":      {address: server.Addr(), user: "elsewhere", password: "p", trouble: store.TroubleRights, described: true},
		"wrong password":  {address: server.Addr(), password: "wrong", trouble: store.TroubleLogin},
		"no password":     {address: server.Addr(), trouble: store.TroubleLogin},
		"no tls":          {address: server.TLSAddr(), password: "right", trouble: store.TroubleTLS},
		"unknown ca":      {address: server.TLSAddr(), password: "right", tls: &redisstore.TLS{}, trouble: store.TroubleTLS},
		"known ca":        {address: server.TLSAddr(), password: "right", tls: &redisstore.TLS{CA: server.TLS().CA}, described: true},
		"wrong name":      {address: server.TLSAddr(), password: "right", tls: &redisstore.TLS{CA: server.TLS().CA, ServerName: "other"}, trouble: store.TroubleTLS},
		"replica":         {address: replica.Addr(), trouble: store.TroubleReplica, described: true},
		"full":            {address: full.Addr(), trouble: store.TroubleMemory, described: true},
		"dead":            {address: dead.Addr(), trouble: store.TroubleAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, redisstore.Options{Address: c.address, Username: c.user, Password: c.password, TLS: c.tls})
			found := s.Examine(t.Context())
			if len(found.Servers) != 1 {
				t.Fatalf("%d servers", len(found.Servers))
			}
			got := found.Servers[0]
			if got.Trouble != c.trouble || (got.Err == nil) != (c.trouble == "") {
				t.Errorf("trouble %q, want %q; %v", got.Trouble, c.trouble, got.Err)
			}
			if got.Described != c.described {
				t.Errorf("described: %v", got.Described)
			}
			if c.described && (got.Version == "" || got.Evicts == "" || got.Memory == 0 || got.MaxMemory == 0 && c.address == server.Addr()) {
				t.Errorf("%+v", got)
			}
			if c.trouble == "" && got.RoundTrip <= 0 {
				t.Errorf("round trip %v", got.RoundTrip)
			}
		})
	}
	patient.Until(t, "the probe's key to expire", func() bool { return server.Admin().Exists(t.Context(), "rl:probe").Val() == 0 })
}
