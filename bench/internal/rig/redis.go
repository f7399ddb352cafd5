// Package rig starts what the benchmarks need, and sums up their results.
package rig

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// Redis is a private redis-server on a free port of 127.0.0.1.
type Redis struct {
	Address string
	Socket  string        // its unix socket
	Client  *redis.Client // for what is not measured

	stop func()
}

// StartRedis starts a server that writes nothing to disk.
func StartRedis() (*Redis, error) {
	server, stop := redistest.Run(redistest.WithArgs("--maxclients", "9000"))
	return &Redis{
		Address: server.Addr(), Socket: server.Socket(), Client: redis.NewClient(&redis.Options{Addr: server.Addr()}), stop: stop,
	}, nil
}

// Close ends the server.
func (r *Redis) Close() error {
	defer r.stop()
	return r.Client.Close()
}

// CPU returns the processor time that the server has used so far.
func (r *Redis) CPU(ctx context.Context) (time.Duration, error) {
	info, err := r.Client.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, err
	}
	total := 0.0
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "used_cpu_user" && name != "used_cpu_sys" {
			continue
		}
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("INFO cpu, %s: %w", name, err)
		}
		total += seconds
	}
	return time.Duration(total * float64(time.Second)), nil
}

// Memory returns what all keys take together, according to MEMORY USAGE.
func (r *Redis) Memory(ctx context.Context) (bytes int64, err error) {
	keys := r.Client.Scan(ctx, 0, "*", 1000).Iterator()
	for keys.Next(ctx) {
		n, err := r.Client.MemoryUsage(ctx, keys.Val(), 0).Result()
		if errors.Is(err, redis.Nil) {
			continue // it has expired since
		}
		if err != nil {
			return 0, fmt.Errorf("MEMORY USAGE %s: %w", keys.Val(), err)
		}
		bytes += n
	}
	return bytes, keys.Err()
}

// Empty removes all keys. Scripts stay.
func (r *Redis) Empty(ctx context.Context) error { return r.Client.FlushAll(ctx).Err() }

// Version returns the server's version.
func (r *Redis) Version(ctx context.Context) string {
	info, _ := r.Client.Info(ctx, "server").Result()
	for line := range strings.Lines(info) {
		if version, ok := strings.CutPrefix(line, "redis_version:"); ok {
			return strings.TrimSpace(version)
		}
	}
	return "unknown"
}
