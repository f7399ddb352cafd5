package redisstore_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// leastACL reads from the docs which rights a Redis user needs.
func leastACL(t testing.TB) []string {
	t.Helper()
	return redistest.DocumentedRights(t, "../docs/redis.md")
}

// works charges with every algorithm, gives back, charges more and resets, and sets overrides of keys and networks.
func works(t *testing.T, s *redisstore.Store) {
	t.Helper()
	for _, name := range algorithms.Names() {
		rule := storetest.Rule(t, "zone", name, storetest.Limit(name, 2, time.Hour))
		c := store.Check{Rule: rule, Key: "another", Cost: 1, LeaseID: storetest.LeaseID(rule)}
		for _, delta := range []int64{1, -1} {
			d := ask(t, s, c)[0]
			s.Adjust(store.Adjustment{Check: c, At: d.Booked(), Turn: d.Turn(), Delta: delta})
			if s.Flush(); s.Waiting() > 0 || s.Stats().Lost > 0 {
				t.Fatalf("%s: an adjustment by %d failed", name, delta)
			}
		}
		for i := range 3 {
			if d := take(t, s, rule, "client", 1); d.Allowed != (i < 2) {
				t.Fatalf("%s, request %d: %+v", name, i+1, d)
			}
		}
		if err := s.Reset(context.Background(), rule, "client"); err != nil {
			t.Fatalf("%s: reset: %v", name, err)
		}
		if d := take(t, s, rule, "client", 2); !d.Allowed {
			t.Fatalf("%s, after reset: %+v", name, d)
		}
		for _, of := range []store.Selector{{Key: "client"}, {Network: networkKey}, {Key: "203.0.113.7", Network: networkKey}} {
			for _, do := range []error{
				s.SetRule(t.Context(), rule, of, store.Override{Kind: store.KindExempt}), s.SetRule(t.Context(), rule, of, store.Override{}),
				s.SetRule(t.Context(), rule, of, store.Override{Kind: store.KindBanned}), s.Unban(t.Context(), rule, of),
			} {
				if do != nil {
					t.Fatalf("%s: an override of %v: %v", name, of, do)
				}
			}
		}
	}
}

func take(t testing.TB, s store.Store, rule *store.Rule, key string, cost int64) algorithms.Decision {
	t.Helper()
	d, err := try(s, rule, key, cost)
	must(t, err)
	return d
}

// try asks for one cost.
func try(s store.Store, rule *store.Rule, key string, cost int64) (algorithms.Decision, error) {
	return decideOne(s, store.Check{Rule: rule, Key: key, Cost: cost, LeaseID: storetest.LeaseID(rule)})
}

// decideOne has a store decide one check.
func decideOne(s store.Store, c store.Check) (algorithms.Decision, error) {
	var d [1]algorithms.Decision
	err := s.Take(context.Background(), []store.Check{c}, d[:])
	return d[0], err
}

// TestConnect reaches a Redis in each way, and says why it does not.
func TestConnect(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	files, user, next := server.TLS(), least(t, server).Username, 0
	certs := &redisstore.TLS{CA: files.CA, Cert: files.Cert, Key: files.Key}
	named, unverified := *certs, redisstore.TLS{Cert: files.Cert, Key: files.Key, InsecureSkipVerify: true}
	named.ServerName = "redis.test"
	for name, options := range map[string]redisstore.Options{
		"unix socket":            {Address: "unix/" + server.Socket()},
		"url":                    {URL: "redis://" + server.Addr() + "/3"},
		"url of a unix socket":   {URL: "unix://" + server.Socket() + "?db=2"},
		"least ACL":              {Address: server.Addr(), Username: user, Password: "s3cret", DB: 1},
		"least ACL by url":       {URL: "redis://" + url.UserPassword(user, "s3cret").String() + "@" + server.Addr()},
		"tls with a server name": {Address: server.TLSAddr(), TLS: &named},
		"tls without verifying":  {Address: server.TLSAddr(), TLS: &unverified},
		"rediss url":             {URL: "rediss://" + server.TLSAddr() + "/9", TLS: certs},
	} {
		t.Run(name, func(t *testing.T) {
			next++
			options.KeyPrefix = server.Prefix() + ":" + strconv.Itoa(next)
			works(t, open(t, options))
		})
	}
	for name, options := range map[string]redisstore.Options{
		"wrong password":            {Address: server.Addr(), Username: user, Password: "wrong"},
		"prefix outside of the ACL": {Address: server.Addr(), Username: user, Password: "s3cret", KeyPrefix: "other"},
		"no client certificate":     {Address: server.TLSAddr(), TLS: &redisstore.TLS{CA: files.CA}},
		"unknown authority":         {Address: server.TLSAddr(), TLS: &redisstore.TLS{Cert: files.Cert, Key: files.Key}},
		"plain where TLS is":        {Address: server.TLSAddr()},
		"nobody there":              {Address: net.JoinHostPort("127.0.0.1", "1")},
	} {
		t.Run(name, func(t *testing.T) {
			err := attempt(open(t, options), hourly(t))
			if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "wrong") {
				t.Fatalf("want an error without a password, got %v", err)
			}
		})
	}
}

// TestOptionErrors: errors about options name the value and the fix, and no password. testdata/configs.txt has most of them.
func TestOptionErrors(t *testing.T) {
	const noURL = "url (not shown because it may hold a password): "
	for want, options := range map[string]redisstore.Options{
		`address "/r.sock" must be host:port or unix//path: write unix//r.sock`: {Address: "/r.sock"},
		noURL + "there is a / ? or # before the @: percent-encode special characters of the password": {
			URL: "redis://user:s3/cret@host:6379",
		},
		noURL + "the db is given more than once":                                   {URL: "redis://host/1?db=1"},
		noURL + "the parameters after the ? do not parse":                          {URL: "redis://host?a=%zz"},
		noURL + `parameter "pool_size" is not supported: use the option pool_size`: {URL: "unix:///s?pool_size=5"},
	} {
		if _, err := redisstore.New(options); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// TestIdentity: stores whose options mean the same are one store.
func TestIdentity(t *testing.T) {
	identity := func(o redisstore.Options) string {
		t.Helper()
		id, err := o.Identity()
		must(t, err)
		return id
	}
	for _, same := range [][2]redisstore.Options{
		{{}, {Address: "127.0.0.1:6379", KeyPrefix: "rl", Timeout: redisstore.DefaultTimeout}},
		{{Address: "::1"}, {Address: "[::1]:6379"}},
		{{URL: "redis://u:s3cret@host/2"}, {Address: "host", Username: "u", Password: "s3cret", DB: 2}},
		{{URL: "redis://:s3cret@?db=2"}, {Password: "s3cret", DB: 2}},
		{{URL: "rediss://host"}, {Address: "host:6379", TLS: &redisstore.TLS{ServerName: "host"}}},
		{{MasterName: "m", Addresses: []string{"a", "b"}}, {Mode: redisstore.ModeSentinel, MasterName: "m", Addresses: []string{"b:26379", "a:26379", "b"}}},
		{{Mode: redisstore.ModeCluster, Addresses: []string{"a", "b"}}, {Mode: redisstore.ModeCluster, Address: "b:6379", Addresses: []string{"a:6379"}}},
		{{Addresses: []string{"a"}}, {Mode: redisstore.ModeStandalone, Address: "a"}},
		{{Mode: redisstore.ModeCluster, URL: "rediss://:s3cret@host"}, {Mode: redisstore.ModeCluster, Address: "host", Password: "s3cret", TLS: &redisstore.TLS{}}},
		{{URL: "unix://u:s3cret@/run/redis.sock?db=1"}, {Address: "unix//run/redis.sock", Username: "u", Password: "s3cret", DB: 1}},
	} {
		if identity(same[0]) != identity(same[1]) {
			t.Errorf("%+v and %+v are two stores", same[0], same[1])
		}
	}
	seen := make(map[string]redisstore.Options)
	for _, o := range []redisstore.Options{
		{},
		{Address: "host"},
		{Mode: redisstore.ModeCluster, Address: "host"},
		{MasterName: "m", Address: "host"},
		{MasterName: "n", Address: "host"},
		{MasterName: "m", Address: "host", SentinelPassword: "a"},
		{DB: 1},
		{Password: "a"},
		{Username: "b", Password: "a"},
		{KeyPrefix: "a"},
		{Timeout: time.Second},
		{PoolSize: 1},
		{TLS: &redisstore.TLS{}},
		{TLS: &redisstore.TLS{InsecureSkipVerify: true}},
	} {
		id := identity(o)
		if other, taken := seen[id]; taken {
			t.Errorf("%+v and %+v are one store", o, other)
		}
		seen[id] = o
	}

	ca := filepath.Join(t.TempDir(), "ca.pem")
	write := func(text string) string {
		t.Helper()
		must(t, os.WriteFile(ca, []byte(text), 0o600))
		return identity(redisstore.Options{TLS: &redisstore.TLS{CA: ca}})
	}
	if write("old") == write("renewed") {
		t.Error("a renewed certificate is not noticed")
	}
}

func hourly(t testing.TB) *store.Rule {
	return storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 100, Window: time.Hour})
}

func attempt(s store.Store, rule *store.Rule) error {
	_, err := try(s, rule, "client", 1)
	return err
}

func TestClosed(t *testing.T) {
	t.Parallel()
	s, rule := open(t, at(redistest.Shared(t))), hourly(t)
	take(t, s, rule, "client", 1)
	closed(t, s)
	closed(t, s) // closing twice does no harm
	if err := attempt(s, rule); !errors.Is(err, store.ErrClosed) {
		t.Errorf("got %v, want %v", err, store.ErrClosed)
	}
}

// TestOpenBreakerCostsNothing: while the breaker is open, a request makes no allocation, and
// sends no packet to a dead Redis.
func TestOpenBreakerCostsNothing(t *testing.T) {
	dead := net.JoinHostPort("127.0.0.1", strconv.Itoa(redistest.FreePort(t)))
	s, rule := open(t, redisstore.Options{Address: dead}), hourly(t)
	for attempt(s, rule) != nil && s.Breaker() == "closed" {
	}
	checks, decisions := []store.Check{{Rule: rule, Key: "client", Cost: 1}}, make([]algorithms.Decision, 1)
	refused := 0
	allocations := testing.AllocsPerRun(10_000, func() {
		if errors.Is(s.Take(context.Background(), checks, decisions), store.ErrUnavailable) {
			refused++
		}
	})
	// A probe each half second allocates, and tests that run at the same time do, too. With the race detector a pool
	// loses a part of what it has.
	if allocations > float64(deep.Racing(1, 0))+0.5 || refused < 9_000 {
		t.Errorf("%v allocations a request, %d refused of 10000", allocations, refused)
	}
}
