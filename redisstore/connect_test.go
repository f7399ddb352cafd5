package redisstore_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// leastACL is what a Redis user needs, and README.md says so.
var leastACL = []string{
	"resetkeys", "~rl:*", "resetchannels", "-@all", "+evalsha", "+eval", "+time", "+get", "+set", "+del",
	"+llen", "+lindex", "+ltrim", "+rpush", "+pexpire", "+select",
}

// works takes with every algorithm, and resets.
func works(t *testing.T, s store.Store) {
	t.Helper()
	for _, name := range algorithms.Names() {
		rule := storetest.Rule(t, "zone", name, algorithms.Limit{Events: 2, Window: time.Hour})
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
	if err := s.Take(context.Background(), []store.Check{{Rule: rule, Key: key, Cost: cost}}, d[:]); err != nil {
		t.Fatalf("take: %v", err)
	}
	return d[0]
}

func TestConnect(t *testing.T) {
	server := redistest.Start(t,
		redistest.WithUser("limiter", "s3cret", leastACL...),
		redistest.WithTLS(true))
	files := server.TLS()
	certs := &redisstore.TLS{CA: files.CA, Cert: files.Cert, Key: files.Key}
	_, port, _ := net.SplitHostPort(server.TLSAddr())
	for name, options := range map[string]redisstore.Options{
		"address":                {Address: server.Addr()},
		"unix socket":            {Address: "unix/" + server.Socket()},
		"url":                    {URL: "redis://" + server.Addr() + "/3"},
		"url of a unix socket":   {URL: "unix://" + server.Socket() + "?db=2"},
		"db":                     {Address: server.Addr(), DB: 5},
		"least ACL":              {Address: server.Addr(), Username: "limiter", Password: "s3cret", DB: 1},
		"least ACL by url":       {URL: "redis://limiter:s3cret@" + server.Addr()},
		"tls":                    {Address: server.TLSAddr(), TLS: certs, DB: 6},
		"tls with a server name": {Address: net.JoinHostPort("127.0.0.1", port), DB: 7, TLS: &redisstore.TLS{CA: files.CA, Cert: files.Cert, Key: files.Key, ServerName: "redis.test"}},
		"tls without verifying":  {Address: server.TLSAddr(), DB: 8, TLS: &redisstore.TLS{Cert: files.Cert, Key: files.Key, InsecureSkipVerify: true}},
		"rediss url":             {URL: "rediss://" + server.TLSAddr() + "/9", TLS: certs},
	} {
		t.Run(name, func(t *testing.T) {
			if err := server.Admin().FlushAll(context.Background()).Err(); err != nil {
				t.Fatal(err)
			}
			works(t, open(t, options))
		})
	}
	for name, options := range map[string]redisstore.Options{
		"wrong password":            {Address: server.Addr(), Username: "limiter", Password: "wrong"},
		"prefix outside of the ACL": {Address: server.Addr(), Username: "limiter", Password: "s3cret", KeyPrefix: "other"},
		"no client certificate":     {Address: server.TLSAddr(), TLS: &redisstore.TLS{CA: files.CA}},
		"unknown authority":         {Address: server.TLSAddr(), TLS: &redisstore.TLS{Cert: files.Cert, Key: files.Key}},
		"plain where TLS is":        {Address: server.TLSAddr()},
		"nobody there":              {Address: net.JoinHostPort("127.0.0.1", "1")},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, options)
			rule := storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 2, Window: time.Hour})
			var d [1]algorithms.Decision
			err := s.Take(context.Background(), []store.Check{{Rule: rule, Key: "client", Cost: 1}}, d[:])
			if err == nil {
				t.Fatalf("no error, but %+v", d[0])
			}
			if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "wrong") {
				t.Fatalf("the error holds a password: %v", err)
			}
		})
	}
}

func TestKeyPrefixesDoNotShare(t *testing.T) {
	server := redistest.Start(t)
	rule := storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 2, Window: time.Hour})
	for _, prefix := range []string{"", "a", "a:b"} {
		s := open(t, redisstore.Options{Address: server.Addr(), KeyPrefix: prefix})
		if d := take(t, s, rule, "client", 2); !d.Allowed {
			t.Fatalf("prefix %q: %+v", prefix, d)
		}
	}
}

// TestOptionErrors: what is wrong is said when the options are read, by value and remedy.
func TestOptionErrors(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, options := range map[string]redisstore.Options{
		"db must be at least 0, got -1":                                          {DB: -1},
		"timeout must be above 0 and at most 1m0s, got -1s":                      {Timeout: -time.Second},
		"timeout must be above 0 and at most 1m0s, got 2m0s":                     {Timeout: 2 * time.Minute},
		"pool_size must be at least 1, got -2":                                   {PoolSize: -2},
		`key_prefix must not contain braces, got "a{b"`:                          {KeyPrefix: "a{b"},
		`username "u" needs a password`:                                          {Username: "u"},
		`address "a:b:c" must be host:port or unix//path`:                        {Address: "a:b:c"},
		`address "host:0" must be host:port or unix//path`:                       {Address: "host:0"},
		`address "host:70000" must be host:port or unix//path`:                   {Address: "host:70000"},
		`address "http://host" must be host:port or unix//path`:                  {Address: "http://host"},
		`address "unix/" has no path: write unix//run/redis.sock`:                {Address: "unix/"},
		"url and address exclude each other":                                     {URL: "redis://localhost", Address: "localhost"},
		"url and password exclude each other":                                    {URL: "redis://localhost", Password: "p"},
		"tls is for TCP, and the address is a unix socket":                       {Address: "unix//run/redis.sock", TLS: &redisstore.TLS{}},
		"tls: ca: open /no/such/file: no such file or directory":                 {TLS: &redisstore.TLS{CA: "/no/such/file"}},
		"tls: ca: " + empty + " holds no certificate in PEM":                     {TLS: &redisstore.TLS{CA: empty}},
		"tls: cert needs a certificate and its key":                              {TLS: &redisstore.TLS{Cert: empty}},
		"tls: cert: tls: failed to find any PEM data in certificate input":       {TLS: &redisstore.TLS{Cert: empty, Key: empty}},
		"tls: cert: open /no/such/cert: no such file or directory":               {TLS: &redisstore.TLS{Cert: "/no/such/cert", Key: empty}},
		"url does not parse (not shown, for it may hold a password): write redi": {URL: "redis://user:pa/ss@host:6379"},
	} {
		s, err := redisstore.New(options)
		if err == nil {
			closed(t, s)
			t.Errorf("no error, want %q", want)
			continue
		}
		if got := err.Error(); got != want && (len(want) < 60 || !strings.HasPrefix(got, want)) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if strings.Contains(err.Error(), "pa/ss") {
			t.Errorf("the error holds a password: %v", err)
		}
	}
}
