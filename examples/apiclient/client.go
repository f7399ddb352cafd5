// Package apiclient sends requests to an API with rate limits, and obeys them.
package apiclient

import (
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"
)

const (
	tries   = 4                // how often a request is sent at most
	longest = 60 * time.Second // a longer wait is left to the caller
)

// repeatable are the methods of requests that do no harm when they are sent twice.
var repeatable = map[string]bool{"GET": true, "HEAD": true, "OPTIONS": true, "PUT": true, "DELETE": true}

// Client sends requests not before the API wants them. Use one for all requests of a key.
type Client struct {
	HTTP http.Client

	mu        sync.Mutex
	notBefore time.Time
}

// Do sends a request. If the API refuses it for now, Do waits and sends it again.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		select {
		case <-time.After(time.Until(c.next())):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		if try > 1 && r.GetBody != nil {
			body, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			r.Body = body
		}
		response, err := c.HTTP.Do(r)
		if err != nil {
			return nil, err
		}
		wait := waitAfter(response, try)
		c.pause(wait)
		refused := response.StatusCode == 429 || response.StatusCode == 503
		if !refused || !repeatable[r.Method] || r.Body != nil && r.GetBody == nil || try == tries || wait > longest {
			return response, nil
		}
		response.Body.Close()
	}
}

func (c *Client) next() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.notBefore
}

// pause delays the next requests, a little longer than asked for, so that not all clients come back at once.
func (c *Client) pause(wait time.Duration) {
	if wait <= 0 || wait > longest {
		return
	}
	at := time.Now().Add(time.Duration(float64(wait) * (1.05 + 0.15*rand.Float64())))
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.After(c.notBefore) {
		c.notBefore = at
	}
}

var remaining = regexp.MustCompile(`;r=0;t=(\d+)`)

// waitAfter returns how long to wait before the next request: 0 if there is no need to.
func waitAfter(response *http.Response, try int) time.Duration {
	header := response.Header
	after := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(after); err == nil {
		now, err := http.ParseTime(header.Get("Date")) // by the clock of the API
		if err != nil {
			now = time.Now()
		}
		return date.Sub(now)
	}
	if used := remaining.FindStringSubmatch(header.Get("RateLimit")); used != nil {
		seconds, _ := strconv.Atoi(used[1])
		return time.Duration(seconds) * time.Second
	}
	if response.StatusCode == 429 || response.StatusCode == 503 {
		return time.Second << (try - 1) // it does not say when
	}
	return 0
}
