package redisstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
)

const (
	// DefaultKeyPrefix begins every key unless Options say otherwise.
	DefaultKeyPrefix = "rl"

	// DefaultTimeout bounds one decision unless Options say otherwise.
	DefaultTimeout = 50 * time.Millisecond

	// DefaultDenyCache is how long a refusal is remembered unless Options say otherwise.
	DefaultDenyCache = time.Second

	defaultHost = "127.0.0.1"
	defaultPort = "6379"

	sentinelPort = "26379"
)

// What Options.Mode may be.
const (
	ModeStandalone = "standalone"
	ModeSentinel   = "sentinel"
	ModeCluster    = "cluster"
)

// Options say where Redis is and how to talk to it.
type Options struct {
	// Mode says what is at the addresses: one Redis, Sentinels, or nodes of a Cluster.
	// Default: ModeSentinel with a MasterName, else ModeStandalone.
	Mode string

	// Address is host:port, host (port 6379), or unix/ and the path of a socket, as in
	// unix//run/redis.sock. Only a standalone Redis can have a socket. Default: 127.0.0.1:6379.
	Address string

	// Addresses are those of the Sentinels (port 26379 if there is none) or of some nodes
	// of the Cluster, in any order. A standalone Redis has one.
	Addresses []string

	// MasterName is what the Sentinels call the master.
	MasterName string

	// SentinelUsername and SentinelPassword are for the Sentinels themselves.
	SentinelUsername, SentinelPassword string

	// URL replaces Address, Addresses, Username, Password and DB:
	// redis://user:password@host:port/db, with rediss for TLS, or
	// unix://user:password@/path?db=0. It has no other parameters.
	URL string

	// Username and Password of an ACL user; Password alone for requirepass.
	Username, Password string

	// DB is the number of the database. A Cluster has only 0.
	DB int

	// TLS, if not nil, encrypts the connection.
	TLS *TLS

	// KeyPrefix begins every key. It must not contain braces. Default: DefaultKeyPrefix.
	KeyPrefix string

	// Timeout bounds how long Redis may take to accept a connection, or to answer a call. Default:
	// DefaultTimeout.
	Timeout time.Duration

	// PoolSize is how many connections there may be to each server. go-redis makes room for them all at once.
	// Default: 10 for each CPU.
	PoolSize int

	// DenyCache is how long a refusal is remembered at most, so that a client that keeps
	// asking does not keep Redis busy. Below 0, nothing is
	// remembered. Default: DefaultDenyCache.
	DenyCache time.Duration

	// Instance names this process among those that share the store. Default: a name of its
	// own for each store.
	Instance string `json:"-"`

	// Ends reports whether the process is about to end. If it is not when the store is
	// closed, adjustments that wait for a Redis that is away are sent later, in the
	// background. Default: always true.
	Ends func() bool `json:"-"`

	// Logger is called when there is something to log. Default: nothing is logged.
	Logger func() *zap.Logger `json:"-"`

	// Dial makes the connections, and encrypts them if that is wanted: TLS is not used then. Default: a
	// [net.Dialer], with TLS if that is set.
	Dial func(ctx context.Context, network, address string) (net.Conn, error) `json:"-"`

	// clock says when leases fall due. Default: the machine's clock. Tests stop it.
	clock func() time.Time
}

// Complete checks how the options go together, and returns them with the URL taken apart and defaults filled in, so that
// options that mean the same are equal. The config has checked their bounds. It reads no files.
func (o Options) Complete() (Options, error) {
	if o.URL != "" {
		if o.Mode == ModeSentinel || o.MasterName != "" {
			return Options{}, fmt.Errorf("url is not for mode %s: write address for the Sentinels; username, password and db are those of the master", ModeSentinel)
		}
		if err := o.useURL(); err != nil {
			return Options{}, err
		}
	}
	switch {
	case strings.ContainsAny(o.KeyPrefix, "{}"):
		return Options{}, fmt.Errorf("key_prefix must not contain braces, got %q", o.KeyPrefix)
	case o.Username != "" && o.Password == "":
		return Options{}, fmt.Errorf("username %q needs a password", o.Username)
	case o.SentinelUsername != "" && o.SentinelPassword == "":
		return Options{}, fmt.Errorf("sentinel_username %q needs a sentinel_password", o.SentinelUsername)
	}
	if err := o.completeMode(); err != nil {
		return Options{}, err
	}
	o.KeyPrefix = cmp.Or(o.KeyPrefix, DefaultKeyPrefix)
	o.DenyCache = max(-1, cmp.Or(o.DenyCache, DefaultDenyCache))
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.PoolSize = cmp.Or(o.PoolSize, 10*runtime.GOMAXPROCS(0))
	if o.Ends == nil {
		o.Ends = func() bool { return true }
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop
	}
	if o.TLS != nil {
		if strings.HasPrefix(o.Address, node.UnixPrefix) {
			return Options{}, errors.New("tls is for TCP, and the address is a unix socket")
		}
		t := *o.TLS // the caller's stays as it is
		if (t.Cert == "") != (t.Key == "") {
			return Options{}, errors.New("tls: cert needs a certificate and its key")
		}
		if o.Mode == ModeStandalone { // else each server has its own
			host, _, _ := net.SplitHostPort(o.Address)
			t.ServerName = cmp.Or(t.ServerName, host)
		}
		o.TLS = &t
	}
	return o, nil
}

// Identity returns a text that is the same for options that mean the same. It covers the contents
// of the files that they name, so that a renewed certificate makes another store. It is a hash,
// because it covers passwords.
func (o Options) Identity() (string, error) {
	completed, err := o.Complete()
	if err != nil {
		return "", err
	}
	all := struct {
		Options Options
		Files   pems
	}{Options: completed}
	if completed.TLS != nil {
		if all.Files, err = completed.TLS.read(); err != nil {
			return "", fmt.Errorf("tls: %w", err)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
