package redisstore_test

import (
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// leastACL reads from the docs which rights a Redis user needs.
func leastACL(t *testing.T) []string {
	t.Helper()
	return redistest.DocumentedRights(t, "../docs/redis.md")
}

// works charges with every algorithm, gives back, charges more and resets.
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
	}
}

func take(t testing.TB, s store.Store, rule *store.Rule, key string, cost int64) algorithms.Decision {
	t.Helper()
	var d [1]algorithms.Decision
	if err := s.Take(context.Background(), []store.Check{{Rule: rule, Key: key, Cost: cost, LeaseID: storetest.LeaseID(rule)}}, d[:]); err != nil {
		t.Fatalf("take: %v", err)
	}
	return d[0]
}

// try asks for one cost.
func try(s store.Store, rule *store.Rule, key string, cost int64) (algorithms.Decision, error) {
	var d [1]algorithms.Decision
	err := s.Take(context.Background(), []store.Check{{Rule: rule, Key: key, Cost: cost, LeaseID: storetest.LeaseID(rule)}}, d[:])
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

// TestOptionErrors: errors about options come when the options are read, and name the value and
// the fix.
func TestOptionErrors(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	const (
		noURL       = "url (not shown because it may hold a password): "
		wrongScheme = noURL + "the scheme must be redis, rediss (for TLS) or unix: write redis://user:password@host:port/db"
		unescaped   = noURL + "there is a / ? or # before the @: percent-encode special characters of the password"
		unparsable  = noURL + "it does not parse: write redis://user:password@host:port/db, rediss:// for TLS, or " +
			"unix://user:password@/path?db=0, with special characters of the password percent-encoded"
		wrongPort  = noURL + "the port must be a number from 1 to 65535"
		wrongDB    = noURL + "the db must be a whole number of at least 0, as in redis://host:port/0"
		noPassword = noURL + "the user needs a password: write redis://user:password@host, or redis://:password@host"
		noSocket   = noURL + "it must name the path of a socket: write unix:///run/redis.sock"
		likeURL    = "address (not shown because it may hold a password) must be host:port or unix//path: " +
			"use url for redis://user:password@host:port/db"
	)
	for _, c := range []struct {
		options redisstore.Options
		want    string
	}{
		{redisstore.Options{DB: -1}, "db must be at least 0, got -1"},
		{redisstore.Options{Timeout: -time.Second}, "timeout must be from 1ms to 1m, got -1s"},
		{redisstore.Options{PoolSize: -2}, "pool_size must be from 1 to 10000, got -2"},
		{redisstore.Options{KeyPrefix: "a{b"}, `key_prefix must not contain braces, got "a{b"`},
		{redisstore.Options{Username: "u"}, `username "u" needs a password`},
		{redisstore.Options{Address: "a:b:c"}, `address "a:b:c" must be host:port or unix//path`},
		{redisstore.Options{Address: "unix/"}, `address "unix/" has no path: write unix//run/redis.sock`},
		{redisstore.Options{Address: "/r.sock"}, `address "/r.sock" must be host:port or unix//path: write unix//r.sock`},
		{redisstore.Options{Address: "http://host"}, likeURL},

		{redisstore.Options{URL: "redis://localhost", Address: "localhost", DB: 1}, "url and address exclude each other"},
		{redisstore.Options{URL: "s3cret"}, wrongScheme},
		{redisstore.Options{URL: "redis://user:s3/cret@host:6379"}, unescaped},
		{redisstore.Options{URL: "redis://user:s3%cret@host:6379"}, unparsable},
		{redisstore.Options{URL: "redis://user:s3cret"}, wrongPort},
		{redisstore.Options{URL: "redis://s3cret@host"}, noPassword},
		{redisstore.Options{URL: "unix:///run/redis.sock?db=s3cret"}, wrongDB},
		{redisstore.Options{URL: "redis://host/1?db=1"}, noURL + "the db is given more than once"},
		{redisstore.Options{URL: "redis://host?a=%zz"}, noURL + "the parameters after the ? do not parse"},
		{redisstore.Options{URL: "redis://host?b=1&a=2"}, noURL + `parameter "a" is not supported: only db is`},
		{redisstore.Options{URL: "unix:///s?pool_size=5"}, noURL + `parameter "pool_size" is not supported: use the option pool_size`},
		{redisstore.Options{URL: "unix://"}, noSocket},

		{redisstore.Options{Address: "unix//run/redis.sock", TLS: &redisstore.TLS{}}, "tls is for TCP, and the address is a unix socket"},
		{redisstore.Options{TLS: &redisstore.TLS{CA: "/no/such/file"}}, "tls: ca: open /no/such/file: no such file or directory"},
		{redisstore.Options{TLS: &redisstore.TLS{CA: empty}}, "tls: ca: " + empty + " holds no certificate in PEM"},
		{redisstore.Options{TLS: &redisstore.TLS{Cert: empty}}, "tls: cert needs a certificate and its key"},
		{redisstore.Options{TLS: &redisstore.TLS{Cert: empty, Key: empty}}, "tls: cert: " + empty + " with " + empty + ": tls: failed to find any PEM data in certificate input"},
	} {
		s, err := redisstore.New(c.options)
		if err == nil {
			closed(t, s)
			t.Errorf("no error, want %q", c.want)
			continue
		}
		if got := err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// TestIdentity: stores whose options mean the same are one store.
func TestIdentity(t *testing.T) {
	identity := func(o redisstore.Options) string {
		t.Helper()
		id, err := o.Identity()
		if err != nil {
			t.Fatal(err)
		}
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
		if err := os.WriteFile(ca, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return identity(redisstore.Options{TLS: &redisstore.TLS{CA: ca}})
	}
	if write("old") == write("renewed") {
		t.Error("a renewed certificate is not noticed")
	}
}
