package main

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Headers of the kit's requests. A limiter keys on the client; the number finds the request again at the upstream.
const (
	clientHeader = "X-Client"
	numberHeader = "X-Number"
)

// upstream is the server behind the limiter. It counts what arrives.
type upstream struct {
	address string
	server  *http.Server

	mu       sync.Mutex
	arrivals map[int][]time.Time
}

func startUpstream(address string) (*upstream, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	u := &upstream{address: listener.Addr().String(), arrivals: make(map[int][]time.Time)}
	u.server = &http.Server{Handler: u, ReadHeaderTimeout: time.Minute}
	go func() {
		if err := u.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(err)
		}
	}()
	return u, nil
}

func (u *upstream) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	now := time.Now()
	number, err := strconv.Atoi(r.Header.Get(numberHeader))
	if err != nil {
		return // not one of those that are counted
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.arrivals[number] = append(u.arrivals[number], now)
}

// take returns what has arrived since the last call, by the number of the request.
func (u *upstream) take() map[int][]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := u.arrivals
	u.arrivals = make(map[int][]time.Time)
	return taken
}

func (u *upstream) Close() error { return u.server.Close() }
