// Command gateway is a reverse proxy with a limiter from a library, or one that asks envoyproxy/ratelimit as Envoy does: with 20 ms
// for an answer, and requests pass without one. The libraries are used as their own examples for net/http do. bench/nemesis measures it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"time"

	redisrate "github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	throttledredis "github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululehttp "github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

const (
	clientHeader = "X-Client"
	limit        = 50
	window       = 5 * time.Second
)

func main() {
	name := flag.String("limiter", "", "redis_rate, ulule, throttled or envoy")
	store := flag.String("store", "", "the address of Redis, or of envoyproxy/ratelimit")
	listen := flag.String("listen", "", "the address of this proxy")
	upstream := flag.String("upstream", "", "the address of the upstream")
	flag.Parse()
	client := redis.NewClient(&redis.Options{Addr: *store})
	wrap := map[string]func(http.Handler) (http.Handler, error){
		"redis_rate": func(next http.Handler) (http.Handler, error) { return redisRate(client, next), nil },
		"ulule":      func(next http.Handler) (http.Handler, error) { return ululeLimiter(client, next) },
		"throttled":  func(next http.Handler) (http.Handler, error) { return throttledGCRA(client, next) },
		"envoy":      func(next http.Handler) (http.Handler, error) { return envoy("http://"+*store+"/json", next), nil },
	}[*name]
	err := fmt.Errorf("no limiter %q", *name)
	if wrap != nil {
		var handler http.Handler
		if handler, err = wrap(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: *upstream})); err == nil {
			err = (&http.Server{Addr: *listen, Handler: handler, ReadHeaderTimeout: time.Minute}).ListenAndServe()
		}
	}
	fmt.Fprintln(os.Stderr, "gateway:", err)
	os.Exit(1)
}

// redisRate is a handler around Allow, as the library's page shows it.
func redisRate(client *redis.Client, next http.Handler) http.Handler {
	limiter := redisrate.NewLimiter(client)
	rate := redisrate.Limit{Rate: limit, Burst: limit, Period: window}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		result, err := limiter.Allow(r.Context(), r.Header.Get(clientHeader), rate)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("RateLimit-Remaining", strconv.Itoa(result.Remaining))
		if result.Allowed == 0 {
			seconds := int((result.RetryAfter + time.Second - 1) / time.Second)
			w.Header().Set("Retry-After", strconv.Itoa(seconds))
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func ululeLimiter(client *redis.Client, next http.Handler) (http.Handler, error) {
	store, err := ululeredis.NewStore(client)
	if err != nil {
		return nil, err
	}
	limiter := ulule.New(store, ulule.Rate{Limit: limit, Period: window})
	key := func(r *http.Request) string { return r.Header.Get(clientHeader) }
	return ululehttp.NewMiddleware(limiter, ululehttp.WithKeyGetter(key)).Handler(next), nil
}

func throttledGCRA(client *redis.Client, next http.Handler) (http.Handler, error) {
	store, err := throttledredis.NewCtx(client, "throttled:")
	if err != nil {
		return nil, err
	}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerDuration(limit, window), MaxBurst: limit - 1})
	if err != nil {
		return nil, err
	}
	handler := throttled.HTTPRateLimiterCtx{RateLimiter: limiter, VaryBy: &throttled.VaryBy{Headers: []string{clientHeader}}}
	return handler.RateLimit(next), nil
}

// envoy asks as the filter envoy.filters.http.ratelimit does by default: timeout 20 ms, failure_mode_deny false.
func envoy(service string, next http.Handler) http.Handler {
	type pair struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	type descriptor struct {
		Entries []pair `json:"entries"`
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question := struct {
			Domain      string       `json:"domain"`
			Descriptors []descriptor `json:"descriptors"`
		}{"nemesis", []descriptor{{[]pair{{"client", r.Header.Get(clientHeader)}}}}}
		body, err := json.Marshal(question)
		if err != nil {
			panic(err) // it is made of texts
		}
		ctx, cancel := context.WithTimeout(r.Context(), 20*time.Millisecond)
		defer cancel()
		ask, err := http.NewRequestWithContext(ctx, http.MethodPost, service, bytes.NewReader(body))
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		answer, err := http.DefaultClient.Do(ask)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusTooManyRequests {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
