// Package backend holds the Caddy modules of the stores, in the namespace
// http.rate_limit.stores: their options, and how to open them.
package backend

import (
	"fmt"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

func init() {
	caddy.RegisterModule(MemoryStore{})
	caddy.RegisterModule(RedisStore{})
}

// RedisStore keeps counters in Redis (6.2 or later) or Valkey, which many instances can share:
// all instances with the same Redis and the same key prefix enforce one limit, by Redis's clock.
// Redis does not have to answer when a config is loaded.
//
// All texts may contain global placeholders such as `{env.REDIS_PASSWORD}` and
// `{file./run/secrets/redis}`. They are replaced when the config is loaded, and must not be
// empty.
type RedisStore struct {
	// What the addresses are: one of `standalone`, `sentinel` or `cluster`. `standalone` is one Redis. `sentinel` are
	// Sentinels, which know the master. `cluster` are nodes of a Cluster. If the keys of a request's zones are on different
	// nodes, all zones are charged or none is, but not at the same instant. Default: `sentinel` with
	// master_name, otherwise `standalone`.
	Mode string `json:"mode,omitempty" syntax:"standalone|sentinel|cluster" default:"=sentinel with master_name, otherwise standalone"`

	// The addresses. In mode standalone, one Redis: `host:port`, `host` (port 6379) or
	// `unix//path/to.sock`. In mode sentinel, all Sentinels: `host:port` or `host` (port
	// 26379). In mode cluster, some of the nodes; one must answer. Default:
	// `127.0.0.1:6379`.
	Address []string `json:"address,omitempty" syntax:"<host:port|unix//path>..." default:"=127.0.0.1:6379"`

	// The name that the Sentinels have for the master. Required in mode sentinel.
	MasterName string `json:"master_name,omitempty" syntax:"<name>" default:"=required with sentinel"`

	// The ACL user at the Sentinels, which do not share users with Redis. Default: their
	// default user.
	SentinelUsername string `json:"sentinel_username,omitempty" default:"=the default user of the Sentinels"`

	// The password at the Sentinels. Default: none. The password of Redis is never sent to
	// Sentinels.
	SentinelPassword string `json:"sentinel_password,omitempty" secret:"true" default:"=none"`

	// The address and the login in one text: `redis://user:password@host:port/db`,
	// `rediss://` with TLS, or `unix://user:password@/path?db=0`. There are no other
	// parameters. Excludes address, username, password and db, and mode sentinel. Default: none.
	URL string `json:"url,omitempty" syntax:"<redis://...>" secret:"true" default:"=none"`

	// The ACL user. Default: Redis's default user.
	Username string `json:"username,omitempty" default:"=the default user of Redis"`

	// The password of the user, or that of `requirepass`. Use a placeholder: a password
	// written here is visible in Caddy's config. Default: none.
	Password string `json:"password,omitempty" secret:"true" default:"=none"`

	// The number of the database, at least 0. A Cluster has only 0. Default: 0.
	DB int `json:"db,omitempty" range:"0.." default:"=0"`

	// Encrypts the connections, also those to Sentinels. Default: no TLS, unless the URL
	// begins with rediss.
	TLS *redisstore.TLS `json:"tls,omitempty" default:"=off"`

	// The start of every key, without braces. Instances with different prefixes do not
	// share limits. Default: `rl`.
	KeyPrefix string `json:"key_prefix,omitempty" default:"=rl"`

	// How long Redis may take to accept a connection, or to answer a call, from 1ms to 1m. After that `on_store_error` applies.
	// Time that a request waits in a busy Caddy does not count. Default: 50ms.
	Timeout caddy.Duration `json:"timeout,omitempty" range:"1ms..1m" default:"=50ms"`

	// How many connections there may be to each server, from 1 to 10000. Default: 10 for each
	// CPU.
	PoolSize int `json:"pool_size,omitempty" range:"1..10000" unit:"connections" default:"=10 for each CPU"`

	// How long a refusal may be remembered, from 1ms to 1m, or 0, which turns this off. A refused
	// client that keeps sending requests then costs no call to Redis for each of them. A reset or
	// a raised limit takes effect on all instances after at most this time. Default: 1s.
	DenyCache *caddy.Duration `json:"deny_cache,omitempty" range:"1ms..1m" zero:"off" syntax:"<duration>|off" default:"=1s"`

	options redisstore.Options
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *RedisStore) UnmarshalJSON(text []byte) error {
	return option.JSON(text, s)
}

// UnmarshalCaddyfile implements [caddyfile.Unmarshaler]. The tags of its fields have the syntax.
func (s *RedisStore) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the module's name
	return option.Block(d, "store redis", s, nil)
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
	o := redisstore.Options{
		Mode: s.Mode, Addresses: slices.Clone(s.Address), MasterName: s.MasterName,
		SentinelUsername: s.SentinelUsername, SentinelPassword: s.SentinelPassword,
		URL: s.URL, Username: s.Username, Password: s.Password, DB: s.DB, KeyPrefix: s.KeyPrefix,
		Timeout: time.Duration(s.Timeout), PoolSize: s.PoolSize, Instance: store.Process(), Ends: caddy.Exiting, Logger: logging.Logger,
	}
	if s.DenyCache != nil {
		if o.DenyCache = time.Duration(*s.DenyCache); o.DenyCache == 0 {
			o.DenyCache = -1
		}
	}
	var tls redisstore.TLS
	if s.TLS != nil {
		tls = *s.TLS
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
			return fmt.Errorf("%s: %w: is the variable set, or the file there and readable?", t.name, err)
		}
		*t.text = expanded
	}
	s.options = o
	return nil
}

// String returns the name of the store for errors.
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

// Partitioned implements [store.Remote].
func (s *RedisStore) Partitioned() bool { return s.options.Mode == redisstore.ModeCluster }

// Open implements [store.Backend].
func (s *RedisStore) Open() (store.Store, error) {
	opened, err := redisstore.New(s.options)
	if err != nil {
		return nil, fmt.Errorf("store redis: %w", err)
	}
	return opened, nil
}

// Interface guards
var (
	_ store.Backend     = (*RedisStore)(nil)
	_ store.Remote      = (*RedisStore)(nil)
	_ caddy.Provisioner = (*RedisStore)(nil)
)
