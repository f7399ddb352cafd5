package redisstore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
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
		redistest.WithUser("nologs", "p", append(leastACL(t), "-rpush", "-zadd")...),
		redistest.WithUser("noset", "p", append(leastACL(t), "-set")...),
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
		trouble, missing        string
		described               bool
	}{
		"works":           {address: server.Addr(), password: "right", described: true},
		"least rights":    {address: server.Addr(), user: "least", password: "p"},
		"the line copied": {address: server.Addr(), user: "copied", password: "p", described: true},
		"no logs":         {address: server.Addr(), user: "nologs", password: "p", missing: "rpush zadd"},
		"no set":          {address: server.Addr(), user: "noset", password: "p", trouble: store.TroubleRights, missing: "set"},
		"no eval":         {address: server.Addr(), user: "noeval", password: "p", trouble: store.TroubleRights, missing: "eval"},
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
			if c.trouble == "" && (found.Rights == nil || got.RoundTrip <= 0) {
				t.Errorf("rights %v, round trip %v", found.Rights, got.RoundTrip)
			}
			if found.Rights != nil {
				slices.Sort(found.Rights.Missing)
				if missing := strings.Join(found.Rights.Missing, " "); missing != c.missing {
					t.Errorf("missing rights %q, want %q", missing, c.missing)
				}
			}
		})
	}
	patient.Until(t, "the probe's key to expire", func() bool { return server.Admin().Exists(t.Context(), "rl:probe").Val() == 0 })
}

// TestRoundTripIsOfNow: a Redis that has just become slow is as slow as it is now, although all calls so far were fast.
func TestRoundTripIsOfNow(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.Start(t, redistest.Start(t).Addr())
	s := open(t, redisstore.Options{Address: proxy.Addr(), Timeout: 20 * time.Second})
	const delay = 400 * time.Millisecond
	patient.Until(t, "fast calls", func() bool {
		found := s.Examine(t.Context()).Servers[0]
		return found.Trouble == "" && found.RoundTrip < delay/2
	})
	proxy.Delay(delay)
	if found := s.Examine(t.Context()).Servers[0]; found.RoundTrip < delay {
		t.Errorf("round trip %v, and each answer is %v late", found.RoundTrip, delay)
	}
}

// TestAllRightsAreTried: each right that the documentation names is tried.
func TestAllRightsAreTried(t *testing.T) {
	for _, word := range leastACL(t) {
		switch command, right := strings.CutPrefix(word, "+"); {
		case !right, command == "evalsha", command == "eval", command == "select":
		case !slices.ContainsFunc(redisstore.Trials, func(trial string) bool { return strings.HasPrefix(trial+" ", command+" ") }):
			t.Errorf("%s is not tried: add it to trials", command)
		}
	}
}

// TestAnnouncements: each process can read what the others announce, a new text at once, and the
// text again after Redis has lost it.
func TestAnnouncements(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithUser("limiter", "p", leastACL(t)...))
	instance := func(name string) *redisstore.Store {
		return open(t, redisstore.Options{Address: server.Addr(), Username: "limiter", Password: "p", Instance: name})
	}
	expect := func(s *redisstore.Store, want ...string) {
		t.Helper()
		texts, err := s.Announcements(t.Context(), 10)
		slices.Sort(texts)
		if err != nil || !slices.Equal(texts, want) {
			t.Errorf("announcements %q, error %v, want %q", texts, err, want)
		}
	}
	one := instance("one")
	one.Silence() // its heartbeats are those of this test
	expect(one)
	two, silent := instance("two"), instance("silent: {x}")
	one.Announce("I am one")
	for _, s := range []*redisstore.Store{one, two, silent} {
		s.Beat()
	}
	expect(two, "", "", "I am one")
	two.Announce("I am two")
	patient.Until(t, "the new text", func() bool {
		texts, _ := one.Announcements(t.Context(), 10)
		return slices.Contains(texts, "I am two")
	})
	expect(one, "", "I am one", "I am two")
	if texts, err := one.Announcements(t.Context(), 2); err != nil || len(texts) != 2 {
		t.Errorf("%q, %v; want two texts", texts, err)
	}
	one.Beat()
	expect(two, "", "I am one", "I am two")
	two.Silence()
	silent.Silence()
	server.Admin().FlushAll(t.Context())
	one.Beat()
	expect(two, "I am one")
	if ttl := server.Admin().PTTL(t.Context(), "rl:announced:{rl:instances}:one").Val(); ttl <= 0 || ttl.Seconds() > 15 {
		t.Errorf("a text lives for %v, want up to 15s", ttl)
	}
}

// TestTLSIsGuessedBeforeTheFirstAnswer: a server that hangs up expects TLS perhaps, unless it has answered before.
func TestTLSIsGuessedBeforeTheFirstAnswer(t *testing.T) {
	t.Parallel()
	server, dead := redistest.Start(t), redistest.Start(t)
	dead.Kill()
	proxy := faultproxy.Start(t, server.Addr())
	s := open(t, redisstore.Options{Address: proxy.Addr(), Timeout: 20 * time.Second})
	patient.Until(t, "an answer", func() bool { _, err := s.Probe(t.Context()); return err == nil && s.HasAnswered() })
	server.Kill() // the proxy goes on, and hangs up
	found := s.Examine(t.Context()).Servers[0]
	if found.Trouble != store.TroubleAnswer || !strings.Contains(found.Err.Error(), "answered before") {
		t.Errorf("after an answer: %q, %v", found.Trouble, found.Err)
	}
	never := open(t, redisstore.Options{Address: faultproxy.Start(t, dead.Addr()).Addr()})
	if found := never.Examine(t.Context()).Servers[0]; found.Trouble != store.TroubleTLS {
		t.Errorf("without an answer: %q, %v", found.Trouble, found.Err)
	}
}
