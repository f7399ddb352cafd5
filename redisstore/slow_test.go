//go:build deep

package redisstore_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestConnectingMayTakeLongerThanADecision: a Redis that is far away answers one call in time,
// but not a new connection and a call together. The store reaches it all the same, and reaches it
// again after the network was slower for a while.
func TestConnectingMayTakeLongerThanADecision(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithTLS(false))
	files := server.TLS()
	for name, options := range map[string]redisstore.Options{
		"plain": {Address: server.Addr()},
		"tls":   {Address: server.TLSAddr(), TLS: &redisstore.TLS{CA: files.CA, ServerName: "127.0.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			far := newFar(t, options.Address)
			options.Address = far.address
			options.Timeout = 100 * time.Millisecond
			// No attempt is refused, however many fail first: a refusal would be remembered, and answered at once.
			rule := storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 1_000_000, Window: time.Hour})
			s := open(t, options)
			reached := func(when string) {
				t.Helper()
				failed, inARow := 0, 0
				patient.Until(t, when+": five answers in a row", func() bool {
					if inARow++; attempt(s, rule) != nil {
						failed, inARow = failed+1, 0
						time.Sleep(20 * time.Millisecond) // until a client sends its next request
					}
					return inARow == 5
				})
				t.Logf("%s: %d failed before five answers in a row", when, failed)
			}
			far.delay(60 * time.Millisecond)
			reached("cold")
			far.delay(300 * time.Millisecond)
			for range 5 {
				if attempt(s, rule) == nil {
					t.Fatal("answered before it could be")
				}
			}
			far.delay(60 * time.Millisecond)
			reached("after it was slower")
		})
	}
}

// far is a proxy that makes a server seem far away.
type far struct {
	address string
	mu      sync.Mutex
	trip    time.Duration // there and back
}

func newFar(t *testing.T, server string) *far {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	f := &far{address: listener.Addr().String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			go f.carry(upstream, client)
			go f.carry(client, upstream)
		}
	}()
	return f
}

func (f *far) delay(trip time.Duration) {
	f.mu.Lock()
	f.trip = trip
	f.mu.Unlock()
}

// carry delivers everything that it reads half a trip later, in order.
func (f *far) carry(to, from net.Conn) {
	type parcel struct {
		data []byte
		due  time.Time
	}
	parcels := make(chan parcel, 1000)
	go func() {
		defer to.Close()
		for p := range parcels {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.data); err != nil {
				_, _ = io.Copy(io.Discard, from)
				return
			}
		}
	}()
	defer close(parcels)
	for {
		data := make([]byte, 16<<10)
		n, err := from.Read(data)
		if n > 0 {
			f.mu.Lock()
			half := f.trip / 2
			f.mu.Unlock()
			parcels <- parcel{data[:n], time.Now().Add(half)}
		}
		if err != nil {
			return
		}
	}
}
