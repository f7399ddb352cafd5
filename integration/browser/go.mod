module github.com/seed-161337e5/caddyratelimit/integration/browser

go 1.26.0

replace github.com/seed-161337e5/caddyratelimit => ../../

require github.com/seed-161337e5/caddyratelimit v0.0.0-00010101000000-000000000000

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)
