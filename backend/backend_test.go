package backend_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/backend"
)

// redis parses a block of options, and provisions the store.
func redis(t *testing.T, options string) (*backend.RedisStore, error) {
	t.Helper()
	s := new(backend.RedisStore)
	if err := s.UnmarshalCaddyfile(caddyfile.NewTestDispenser("redis {\n" + options + "\n}")); err != nil {
		return nil, err
	}
	return s, s.Provision(caddy.Context{})
}

// TestMemory: a memory store has room for a million keys unless it is told, and not for fewer than 1024.
func TestMemory(t *testing.T) {
	for text, want := range map[string]string{
		"memory": "", "memory {\nmax_keys 1024\n}": "", "memory {\nmax_keys 1023\n}": "max_keys must be at least 1024, got 1023",
		"memory {\nmax_keys -1\n}": "max_keys must be at least 1024, got -1", "memory {\nmax_keys many\n}": "max_keys 'many' must be a whole number",
		"memory 1024": "store memory takes its options in a block",
	} {
		m := new(backend.MemoryStore)
		err := m.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text))
		if err == nil {
			err = m.Validate()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	m := new(backend.MemoryStore)
	if id, err := m.Identity(); id != "memory" || err != nil {
		t.Errorf("%s, %v", id, err)
	}
	opened, err := m.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
}

// TestRedisCaddyfile: each option sets the field that JSON has for it.
func TestRedisCaddyfile(t *testing.T) {
	s := new(backend.RedisStore)
	if err := s.UnmarshalCaddyfile(caddyfile.NewTestDispenser(`redis {
		mode sentinel
		address a:1 b:2
		master_name m
		username u
		password p
		sentinel_username su
		sentinel_password sp
		db 3
		tls {
			ca ca.pem
			cert c.pem k.pem
			server_name n
			insecure_skip_verify
		}
		key_prefix x
		timeout 20ms
		pool_size 7
		deny_cache off
		require
	}`)); err != nil {
		t.Fatal(err)
	}
	var want backend.RedisStore
	if err := json.Unmarshal([]byte(`{"mode": "sentinel", "address": ["a:1", "b:2"], "master_name": "m", "username": "u", "password": "p",
		"sentinel_username": "su", "sentinel_password": "sp", "db": 3, "tls": {"ca": "ca.pem", "cert": "c.pem", "key": "k.pem", "server_name": "n", "insecure_skip_verify": true},
		"key_prefix": "x", "timeout": "20ms", "pool_size": 7, "deny_cache": 0, "require": true}`), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(*s, want) {
		t.Errorf("%+v, want %+v", *s, want)
	}
	if !s.Required() {
		t.Error("it is not required")
	}
	if err := json.Unmarshal([]byte(`{"adress": []}`), &want); err == nil || err.Error() != `unknown option "adress"; did you mean "address"?` {
		t.Errorf("a misspelled option: %v", err)
	}
}

// TestRedisProvision: what is wrong is found before a store is opened, and no error shows a password.
func TestRedisProvision(t *testing.T) {
	t.Setenv("RL_TEST_PASSWORD", "s3cr3t")
	missing := filepath.Join(t.TempDir(), "missing")
	for options, want := range map[string]string{
		"timeout 1ms":                           "",
		"timeout 999us":                         "timeout must be at least 1ms",
		"timeout -1s":                           "timeout must be at least 1ms",
		"deny_cache 1ms":                        "",
		"deny_cache 999us":                      "deny_cache must be at least 1ms",
		"deny_cache no":                         "write a duration such as 1s, or off",
		"password {env.RL_TEST_PASSWORD}":       "",
		"password {env.RL_TEST_UNSET}":          "password: ",
		"url {env.RL_TEST_UNSET}":               "is the variable set?",
		"password {file." + missing + "}":       "is the file there and readable?",
		"address a " + `""`:                     "address is empty",
		"url redis://u:s3cr3t@h s3cr3t":         "url takes one argument",
		"password s3cr3t\npassword other":       "password already specified: (hidden)",
		"redis://u:s3cr3t@h":                    "unknown option of store redis: '(hidden)'",
		"tls {\ncert a.pem\n}":                  "wrong argument count",
		"tls {\ninsecure_skip_verify please\n}": "wrong argument count",
		"tls now {\n}":                          "tls takes its options in a block",
	} {
		_, err := redis(t, options)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t")) {
			t.Errorf("%s: %v, want %q", options, err, want)
		}
	}
	s := &backend.RedisStore{Address: []string{""}}
	if err := s.Provision(caddy.Context{}); err == nil || err.Error() != "address is empty" {
		t.Errorf("an empty address: %v", err)
	}
}

// TestRedisIdentity: configs with the same store have the same identity, which shows no password, and a file or a
// variable is the same as its value.
func TestRedisIdentity(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("s3cr3t"), 0o600); err != nil {
		t.Fatal(err)
	}
	identity := func(options string) string {
		s, err := redis(t, options)
		if err != nil {
			t.Fatal(err)
		}
		id, err := s.Identity()
		if err != nil || !strings.HasPrefix(id, "redis:") || strings.Contains(id, "s3cr3t") {
			t.Errorf("%s: %s, %v", options, id, err)
		}
		return id
	}
	usual := identity("")
	for options, same := range map[string]bool{
		"address 127.0.0.1:6379": true, "url redis://127.0.0.1:6379": true, "key_prefix rl": true, "timeout 50ms": true,
		"db 1": false, "key_prefix x": false, "address 127.0.0.2": false, "password s3cr3t": false,
	} {
		if got := identity(options); (got == usual) != same {
			t.Errorf("%s is the usual store: %v, want %v", options, got == usual, same)
		}
	}
	if identity("password s3cr3t") != identity("password {file."+file+"}") {
		t.Error("a password out of a file is another one")
	}
}

// TestRedisDetails: what operators see of a store is complete, and has no password.
func TestRedisDetails(t *testing.T) {
	s, err := redis(t, "mode sentinel\naddress s1 s2:7\nmaster_name m\npassword s3cr3t\ntimeout 20ms\ndb 2")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"mode": "sentinel", "addresses": []string{"s1:26379", "s2:7"}, "key_prefix": "rl", "db": 2, "tls": false, "timeout": (20 * time.Millisecond).Seconds(), "master_name": "m",
	}
	if got := s.Details(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if s.Partitioned() {
		t.Error("Sentinels have one master")
	}
	if got := s.String(); !strings.HasPrefix(got, "store redis ") || strings.Contains(got, "s3cr3t") {
		t.Errorf("it is called %s", got)
	}
	if s, err = redis(t, "mode cluster\naddress a b"); err != nil || !s.Partitioned() {
		t.Errorf("a Cluster is not partitioned, %v", err)
	}
	if s, err = redis(t, "mode other"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(); err == nil || !strings.HasPrefix(err.Error(), "store redis: ") {
		t.Errorf("an unknown mode opens: %v", err)
	}
	if got := s.Details(); got != nil || s.String() != "store redis" {
		t.Errorf("an unknown mode has %v, and is called %s", got, s)
	}
}
