module github.com/seed-161337e5/caddyratelimit/bench

go 1.26.0

replace github.com/seed-161337e5/caddyratelimit => ../

require (
	github.com/go-redis/redis_rate/v10 v10.0.1
	github.com/gomodule/redigo v1.9.3
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe
	github.com/redis/go-redis/v9 v9.23.0
	github.com/seed-161337e5/caddyratelimit v0.0.0-00010101000000-000000000000
	github.com/throttled/throttled/v2 v2.15.0
	github.com/ulule/limiter/v3 v3.11.2
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/gaissmai/bart v0.30.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.uber.org/zap v1.28.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)
