package backend_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// TestRedisInWords: what operators see of a store has no password.
func TestRedisInWords(t *testing.T) {
	s, err := redis(t, "mode sentinel\naddress s1 s2:7\nmaster_name m\npassword s3cr3t\ntimeout 20ms\ndb 2")
	if err != nil {
		t.Fatal(err)
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
	if s.String() != "store redis" {
		t.Errorf("an unknown mode is called %s", s)
	}
}
