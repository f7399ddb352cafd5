package main

import (
	"cmp"
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"
)

// load is what is offered: an open loop, which sends at its times whether answers come or not.
type load struct {
	urls    []string // each request goes to the next one
	clients int      // the first half of them stays below the limit
	limit   int
	window  time.Duration
	below   float64 // of the limit
	above   float64 // of the limit
	volley  int     // how many at once a client above the limit sends
	time    time.Duration
	timeout time.Duration
}

// schedule returns the requests with their clients and the times at which they are to be sent.
func (l load) schedule() (all []request) {
	for client := range l.clients {
		share, volley := l.below, 1
		if client >= l.clients/2 {
			share, volley = l.above, l.volley
		}
		pause := time.Duration(float64(l.window) / float64(l.limit) / share * float64(volley))
		// Clients do not begin together.
		for at := pause * time.Duration(client) / time.Duration(l.clients); at < l.time; at += pause {
			for range volley {
				all = append(all, request{client: client, sent: at, retryAfter: -1, remaining: -1})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b request) int { return cmp.Compare(a.sent, b.sent) })
	return all
}

// offer sends the schedule, and returns what came of it when all is answered or has timed out.
func (l load) offer(ctx context.Context, begin time.Time, up *upstream) []request {
	// A connection for each request: a transport that keeps them sends a request again if it finds one closed.
	client := &http.Client{
		Timeout:       l.timeout,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	up.take()
	all := l.schedule()
	var sending sync.WaitGroup
	for i := range all {
		select {
		case <-time.After(time.Until(begin.Add(all[i].sent))):
		case <-ctx.Done():
			all = all[:i]
		}
		if ctx.Err() != nil {
			break
		}
		sending.Go(func() { all[i].send(ctx, client, begin, l.urls[i%len(l.urls)], i) })
	}
	sending.Wait()
	for i, times := range up.take() {
		for _, at := range times {
			all[i].arrivals = append(all[i].arrivals, at.Sub(begin))
		}
	}
	return all
}

// send sends the request, and notes its answer.
func (r *request) send(ctx context.Context, client *http.Client, begin time.Time, url string, number int) {
	defer func() { r.done = time.Since(begin) }()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		panic(err) // the URLs have been parsed
	}
	q.Header.Set(clientHeader, "client-"+strconv.Itoa(r.client))
	q.Header.Set(numberHeader, strconv.Itoa(number))
	r.sent = time.Since(begin)
	response, err := client.Do(q)
	if err != nil {
		return
	}
	defer response.Body.Close()
	r.status = response.StatusCode
	r.retryAfter = number10(response.Header.Get("Retry-After"))
	r.remaining = remaining(response.Header)
}

var item = regexp.MustCompile(`;\s*r=(\d+)`)

// remaining reads what is left from the first of the fields that are in use for it. It is -1 without one.
func remaining(h http.Header) int {
	if match := item.FindStringSubmatch(h.Get("RateLimit")); match != nil {
		return number10(match[1])
	}
	return number10(cmp.Or(h.Get("RateLimit-Remaining"), h.Get("X-RateLimit-Remaining"), "none"))
}

// number10 reads a decimal number. Anything else is -1.
func number10(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return -1
	}
	return n
}
