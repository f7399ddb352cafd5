package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
)

// The limiters of this file cannot be used from another Go module: two are written in Java, one
// is inside a gateway, and one is not in the module proxy. Their scripts are rewritten after
// the originals: the same commands on the same kinds of values, with the same arithmetic between
// them.

// springScript keeps the tokens and the time of a client in two strings, in whole seconds of
// Redis's clock. Both expire after twice the time to fill up.
const springScript = `
local rate, capacity, requested = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local now = tonumber(redis.call("TIME")[1])
local ttl = math.max(1, math.floor(capacity / rate * 2))
local had = tonumber(redis.call("GET", KEYS[1])) or capacity
local since = tonumber(redis.call("GET", KEYS[2])) or 0
local tokens = math.min(capacity, had + math.max(0, now - since) * rate)
local admitted = 0
if tokens >= requested then
	tokens = tokens - requested
	admitted = 1
end
redis.call("SETEX", KEYS[1], ttl, tokens)
redis.call("SETEX", KEYS[2], ttl, now)
return {admitted, tokens}`

// shenyuScript does the same with the gateway's clock.
const shenyuScript = `
local rate, capacity, now, requested = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local ttl = math.max(1, math.floor(capacity / rate * 2))
local had = tonumber(redis.call("GET", KEYS[1]))
if had == nil then
	had = capacity
end
local since = tonumber(redis.call("GET", KEYS[2]))
if since == nil then
	since = 0
end
local tokens = math.min(capacity, had + math.max(0, now - since) * rate)
local admitted = tokens >= requested
local answer = 0
if admitted then
	tokens = tokens - requested
	answer = 1
end
redis.call("SETEX", KEYS[1], ttl, tokens)
redis.call("SETEX", KEYS[2], ttl, now)
return {answer, tokens}`

// traefikScript keeps a hash of time and tokens, on the gateway's clock, with a debt of tokens
// for which the gateway waits. It writes on every call, also when it refuses.
const traefikScript = `
local rate, burst, ttl, now, longest =
	tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local last, tokens = 0, 0
local state = redis.call("HGETALL", KEYS[1])
if #state == 4 then
	last, tokens = tonumber(state[2]), tonumber(state[4])
end
tokens = math.min(burst, tokens + rate * (now - math.min(now, last))) - 1
local wait = 0
if tokens < 0 then
	wait = -tokens / rate
	if wait > longest then
		tokens = math.min(burst, tokens + 1)
	end
end
redis.call("HSET", KEYS[1], "last", now, "tokens", tokens)
redis.call("EXPIRE", KEYS[1], ttl)
return {"true", tostring(wait), tostring(tokens)}`

// sethvargoScript keeps a hash of five fields, which the first request of a key makes one by one.
// Tokens come back all at once, at each interval after the first request.
const sethvargoScript = `
local now, most, interval = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local state, fields = {}, redis.call("HGETALL", KEYS[1])
for i = 1, #fields, 2 do
	state[fields[i]] = fields[i + 1]
end
local function field(name, default, store)
	if state[name] then
		return tonumber(state[name])
	end
	if store then
		redis.call("HSET", KEYS[1], name, default)
		redis.call("EXPIRE", KEYS[1], 30)
	end
	return default
end
local start, tick = field("s", now, true), field("t", 0, true)
most = field("m", most, true)
local tokens = field("k", most)
interval = field("i", interval)
local ttl = 3 * math.floor(interval / 1000000000)
local current = math.max(0, math.floor((now - start) / interval))
if tick < current then
	tokens = most
	redis.call("HSET", KEYS[1], "s", start, "t", current, "i", interval, "k", tokens)
	redis.call("EXPIRE", KEYS[1], ttl)
end
local reset = start + (current + 1) * interval
if tokens > 0 then
	redis.call("HSET", KEYS[1], "k", tokens - 1)
	redis.call("EXPIRE", KEYS[1], ttl)
	return {most, tokens - 1, reset, 1}
end
return {most, tokens, reset, 0}`

func springStyle() peer {
	return twoStrings("in the style of Spring Cloud Gateway", springScript, func() any { return "" })
}

func shenyuStyle() peer {
	return twoStrings("in the style of ShenYu", shenyuScript, func() any { return time.Now().Unix() })
}

// twoStrings is a script that keeps a client's tokens under one key, and their time under
// another. Its third argument is the time.
func twoStrings(name, text string, now func() any) peer {
	return peer{
		name: name, setup: "its script, rewritten; " + goRedisPool,
		open: func(address string, l limit) (*limiter, error) {
			client, script := pooled(address), goredis.NewScript(text)
			rate := float64(l.events) / l.period.Seconds()
			return oneByOne(l, func(ctx context.Context, key string) (bool, error) {
				id := "request_rate_limiter.{" + key + "}."
				answer, err := script.Run(ctx, client, []string{id + "tokens", id + "timestamp"},
					rate, l.events, now(), 1).Int64Slice()
				if err != nil {
					return false, err
				}
				if len(answer) != 2 {
					return false, fmt.Errorf("%d numbers in an answer of two", len(answer))
				}
				return answer[0] == 1, nil
			}, client.Close), nil
		},
	}
}

func traefikStyle() peer {
	return peer{
		name: traefikName, setup: "its script, rewritten; " + goRedisPool,
		open: func(address string, l limit) (*limiter, error) {
			client, script := pooled(address), goredis.NewScript(traefikScript)
			rate := float64(l.events) / l.period.Seconds()
			// How long the gateway would make a request wait, and how long it keeps a key.
			longest, ttl := 500*time.Millisecond, 1+int(1/rate)
			if rate >= 1 {
				longest, ttl = time.Duration(float64(time.Second)/(2*math.Floor(rate))), 2
			}
			return oneByOne(l, func(ctx context.Context, key string) (bool, error) {
				answer, err := script.Run(ctx, client, []string{"rate/" + key},
					rate/1e6, l.events, ttl, time.Now().UnixMicro(), longest.Microseconds()).StringSlice()
				if err != nil {
					return false, err
				}
				if len(answer) != 3 {
					return false, fmt.Errorf("%d words in an answer of three", len(answer))
				}
				ok, err := strconv.ParseBool(answer[0])
				if err != nil {
					return false, err
				}
				wait, err := strconv.ParseFloat(answer[1], 64)
				return ok && wait <= float64(longest.Microseconds()), err
			}, client.Close), nil
		},
	}
}

// sethvargoStyle uses redigo, as the original does.
func sethvargoStyle() peer {
	return peer{
		name: "in the style of sethvargo/go-redisstore", setup: "its script, rewritten; redigo, pool of 256",
		open: func(address string, l limit) (*limiter, error) {
			pool := &redis.Pool{
				MaxActive: peerPool, MaxIdle: peerPool, Wait: true,
				Dial: func() (redis.Conn, error) { return redis.Dial("tcp", address) },
			}
			script := redis.NewScript(1, sethvargoScript)
			return oneByOne(l, func(ctx context.Context, key string) (bool, error) {
				conn, err := pool.GetContext(ctx)
				if err != nil {
					return false, err
				}
				answer, err := redis.Int64s(script.DoContext(ctx, conn, key,
					strconv.FormatInt(time.Now().UnixNano(), 10), l.events, l.period.Nanoseconds()))
				if err = errors.Join(err, conn.Close()); err != nil {
					return false, err
				}
				if len(answer) != 4 {
					return false, fmt.Errorf("%d numbers in an answer of four", len(answer))
				}
				return answer[3] == 1, nil
			}, pool.Close), nil
		},
	}
}
