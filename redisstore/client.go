package redisstore

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// open makes the ways to the servers. It reads the certificates and does not connect.
func (s *Store) open(o Options) (topology, error) {
	var config *tls.Config
	if o.TLS != nil {
		var err error
		if config, err = o.TLS.config(); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
	}
	servers := &lanes{open: func(address string) *lane {
		c := o.client(address, config)
		c.Username, c.Password, c.DB = o.Username, o.Password, o.DB
		l := &lane{address: address, client: redis.NewClient(c), script: &s.script, breaker: newBreaker(), quit: s.returns.quit}
		l.probeKey, l.breaker.opened = s.probeKey, l.connect
		l.timeout, l.epoch, l.idle, l.send = s.timeout, time.Now(), make(chan struct{}), l.run
		if s.slots {
			l.send = func(ctx context.Context, c *call) error { return s.sendSlots(ctx, l, c) }
		}
		return l
	}}
	switch o.Mode {
	case ModeSentinel:
		var sentinels []*redis.Client
		for _, address := range o.Addresses {
			c := o.client(address, config)
			c.Username, c.Password, c.PoolSize = o.SentinelUsername, o.SentinelPassword, 2
			sentinels = append(sentinels, redis.NewClient(c))
		}
		return newSentinel(o.MasterName, sentinels, servers, o.Timeout), nil
	case ModeCluster:
		return newCluster(o.Addresses, servers, o.Timeout), nil
	}
	return single{servers.open(o.Address)}, nil
}

// client is how to talk to one server.
func (o *Options) client(address string, config *tls.Config) *redis.Options {
	c := &redis.Options{Network: "tcp", Addr: address, TLSConfig: config, PoolSize: o.PoolSize}
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		c.Network, c.Addr = "unix", path
	}

	// A reply that got lost may belong to a charge that was carried out, so nothing is
	// sent twice. Each decision brings its deadline; only a connection that is made in the
	// background may take longer, see lane.connect.
	c.MaxRetries = -1
	c.DialerRetries = 1
	c.ContextTimeoutEnabled = true
	longest := max(o.Timeout, connectTimeout)
	c.DialTimeout, c.ReadTimeout, c.WriteTimeout, c.PoolTimeout = longest, longest, longest, longest
	c.PipelinePoolSize = -1 // pipelines take their connections from the one pool
	c.DisableIdentity = true
	c.Dialer = dialer(c)
	c.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return c
}
