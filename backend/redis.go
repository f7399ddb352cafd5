// Package backend has the modules of stores, in the namespace http.rate_limit.stores: their
// options, and how to open them.
package backend

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

func init() {
	caddy.RegisterModule(MemoryStore{})
	caddy.RegisterModule(RedisStore{})
}

// RedisStore keeps counters in a Redis (6.2 or later) or Valkey that many Caddys share:
// all that use the same one and the same key prefix enforce one limit, on Redis's clock.
// It need not answer when a config is loaded.
//
// All texts take global placeholders such as `{env.REDIS_PASSWORD}` and
// `{file./run/secrets/redis}`, which are replaced at load and must not be empty.
type RedisStore struct {
	// What is at the addresses: `standalone`, one Redis; `sentinel`, Sentinels, which say
	// which Redis is the master; or `cluster`, nodes of a Redis Cluster, which say who has
	// which keys. In a Cluster, zones of a request whose keys differ may be on different
	// nodes: all are charged or none, but not at one instant. Default: `sentinel` with
	// master_name, else `standalone`.
	Mode string `json:"mode,omitempty"`

	// Where Redis is: `host:port`, `host` (port 6379) or `unix//path/to.sock`, which is for
	// standalone only. With mode sentinel, where the Sentinels are: all of them, `host:port`
	// or `host` (port 26379). With mode cluster, some of its nodes, of which one must
	// answer. Default: `127.0.0.1:6379`.
	Address []string `json:"address,omitempty"`

	// What the Sentinels call the master. Required with mode sentinel.
	MasterName string `json:"master_name,omitempty"`

	// The ACL user at the Sentinels, who may have other users than Redis. Default: their
	// default user.
	SentinelUsername string `json:"sentinel_username,omitempty"`

	// The password at the Sentinels. Default: none is sent, also not the one of Redis.
	SentinelPassword string `json:"sentinel_password,omitempty"`

	// The same in one text: `redis://user:password@host:port/db`, `rediss://` with TLS,
	// or `unix://user:password@/path?db=0`; no other
	// parameters. It excludes address, username, password and db, and mode sentinel.
	URL string `json:"url,omitempty"`

	// The ACL user. Default: Redis's default user.
	Username string `json:"username,omitempty"`

	// The user's password, or that of `requirepass`. Prefer a placeholder: what stands
	// here is visible in Caddy's config.
	Password string `json:"password,omitempty"`

	// The number of the database. A Cluster has only 0. Default: 0.
	DB int `json:"db,omitempty"`

	// Encrypts the connections, to Sentinels too. Default: no TLS, unless the URL says rediss.
	TLS *RedisTLS `json:"tls,omitempty"`

	// What every key begins with, without braces. Instances with different prefixes do
	// not share limits. Default: `rl`.
	KeyPrefix string `json:"key_prefix,omitempty"`

	// How long one decision may take, dialling and waiting for a connection included;
	// then `on_store_error` applies. From 1ms to 1m. Default: 50ms.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	// How many connections there may be to each server, at most 10000. Default: 10 for
	// each CPU.
	PoolSize int `json:"pool_size,omitempty"`

	// How long a refusal is remembered at most, from 1ms to 1m, so that a client that keeps
	// asking costs Redis a call now and then and not one for each request. 0 is not at
	// all. A reset or a raised limit counts for everybody after this time at the latest.
	// Default: 1s.
	DenyCache *caddy.Duration `json:"deny_cache,omitempty"`

	options redisstore.Options
}

// RedisTLS is how to encrypt the connection to Redis.
type RedisTLS struct {
	// A PEM file with the certificates to trust. Default: the system's.
	CA string `json:"ca,omitempty"`

	// A PEM file with the client's certificate; needs key.
	Cert string `json:"cert,omitempty"`

	// A PEM file with the key of cert.
	Key string `json:"key,omitempty"`

	// The name that the certificate of every server must be for. Default: the host of its
	// address.
	ServerName string `json:"server_name,omitempty"`

	// Accepts any certificate. Whoever is on the way can then read and change all that is
	// said. Default: false.
	InsecureSkipVerify bool `json:"insecure_skip_verify,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (RedisStore) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.rate_limit.stores.redis",
		New: func() caddy.Module { return new(RedisStore) },
	}
}

// Provision implements [caddy.Provisioner].
func (s *RedisStore) Provision(caddy.Context) error {
	if s.Timeout != 0 {
		if err := duration.CheckMin("timeout", s.Timeout, redisstore.MinTimeout); err != nil {
			return err
		}
	}
	o := redisstore.Options{
		Mode: s.Mode, Addresses: slices.Clone(s.Address), MasterName: s.MasterName,
		SentinelUsername: s.SentinelUsername, SentinelPassword: s.SentinelPassword,
		URL: s.URL, Username: s.Username, Password: s.Password, DB: s.DB, KeyPrefix: s.KeyPrefix,
		Timeout: time.Duration(s.Timeout), PoolSize: s.PoolSize, Instance: store.Process(), Ends: caddy.Exiting, Logger: logging.Logger,
	}
	if s.DenyCache != nil {
		if o.DenyCache = time.Duration(*s.DenyCache); o.DenyCache == 0 {
			o.DenyCache = -1
		} else if err := duration.CheckMin("deny_cache", *s.DenyCache, time.Millisecond); err != nil {
			return err
		}
	}
	if slices.Contains(s.Address, "") {
		return errors.New("address is empty")
	}
	var tls redisstore.TLS
	if s.TLS != nil {
		tls = redisstore.TLS(*s.TLS)
		o.TLS = &tls
	}
	repl := caddy.NewReplacer()
	type text struct {
		name string
		text *string
	}
	texts := []text{
		{"mode", &o.Mode},
		{"url", &o.URL},
		{"master_name", &o.MasterName},
		{"username", &o.Username},
		{"password", &o.Password},
		{"sentinel_username", &o.SentinelUsername},
		{"sentinel_password", &o.SentinelPassword},
		{"key_prefix", &o.KeyPrefix},
		{"tls ca", &tls.CA},
		{"tls cert", &tls.Cert},
		{"tls key", &tls.Key},
		{"tls server_name", &tls.ServerName},
	}
	for i := range o.Addresses {
		texts = append(texts, text{"address", &o.Addresses[i]})
	}
	for _, t := range texts {
		// An unknown placeholder stays as it is: passwords may have braces in them.
		expanded, err := repl.ReplaceOrErr(*t.text, true, false)
		if err != nil {
			return fmt.Errorf("%s: %w%s", t.name, err, whyEmpty(err))
		}
		*t.text = expanded
	}
	s.options = o
	return nil
}

// whyEmpty is what to look for when a placeholder stands for nothing.
func whyEmpty(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "{env."):
		return ": is the variable set?"
	case strings.Contains(text, "{file."):
		return ": is the file there and readable?"
	}
	return ""
}

// String is what errors call the store.
func (s *RedisStore) String() string {
	o, err := s.options.Complete()
	if err != nil {
		return "store redis"
	}
	return "store redis " + o.Where()
}

// Identity implements [store.Backend].
func (s *RedisStore) Identity() (string, error) {
	id, err := s.options.Identity()
	if err != nil {
		return "", fmt.Errorf("store redis: %w", err)
	}
	return "redis:" + id, nil
}

// Partitioned implements [store.Partitioned].
func (s *RedisStore) Partitioned() bool { return s.options.Mode == redisstore.ModeCluster }

// Open implements [store.Backend].
func (s *RedisStore) Open() (store.Store, error) {
	opened, err := redisstore.New(s.options)
	if err != nil {
		return nil, fmt.Errorf("store redis: %w", err)
	}
	return opened, nil
}

// Details implements [store.Detailer].
func (s *RedisStore) Details() map[string]any {
	o, err := s.options.Complete()
	if err != nil {
		return nil
	}
	addresses := o.Addresses
	if o.Address != "" {
		addresses = []string{o.Address}
	}
	details := map[string]any{
		"mode": o.Mode, "addresses": addresses, "key_prefix": o.KeyPrefix, "db": o.DB, "tls": o.TLS != nil,
		"timeout": o.Timeout.Seconds(),
	}
	if o.MasterName != "" {
		details["master_name"] = o.MasterName
	}
	return details
}

// Interface guards
var (
	_ store.Backend     = (*RedisStore)(nil)
	_ store.Detailer    = (*RedisStore)(nil)
	_ store.Partitioned = (*RedisStore)(nil)
	_ caddy.Provisioner = (*RedisStore)(nil)
)
