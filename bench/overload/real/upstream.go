package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// upstream is a server that can do only so much. It does not notice that a client has left, as most servers do not.
type upstream struct {
	workers  int
	took     time.Duration // the mean time of a request
	database string

	inside atomic.Int64
	mu     sync.Mutex
	freed  *sync.Cond
	busy   int
}

// serve is an upstream, until its process ends.
func serve(role, listen string, u *upstream) error {
	u.freed = sync.NewCond(&u.mu)
	handle := map[string]http.HandlerFunc{"pool": u.pool, "processor": u.processor, "connections": u.connections}[role]
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	if role == "database" {
		return u.serveQueries(listener)
	}
	if handle == nil {
		return fmt.Errorf("there is no upstream of the kind %q", role)
	}
	if role == "processor" {
		runtime.GOMAXPROCS(1)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/ready", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/workers", func(_ http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.FormValue("n"))
		u.mu.Lock()
		u.workers = n
		u.mu.Unlock()
		u.freed.Broadcast()
	})
	mux.HandleFunc("/", handle)
	return http.Serve(listener, mux)
}

// pool has workers, each of which does one request at a time, and a queue without an end in front of them. Each request
// beyond the workers makes all others a little slower, as in the scenarios of bench/overload.
func (u *upstream) pool(w http.ResponseWriter, r *http.Request) {
	inside := u.inside.Add(1)
	defer u.inside.Add(-1)
	u.mu.Lock()
	for u.busy >= u.workers {
		u.freed.Wait()
	}
	u.busy++
	more := max(0, float64(inside)/float64(u.workers)-1)
	u.mu.Unlock()
	took := float64(u.took) * rand.ExpFloat64()
	switch r.URL.Path { // some requests always take as long
	case "/quick":
		took = float64(10 * time.Millisecond)
	case "/slow":
		took = float64(time.Second)
	}
	time.Sleep(time.Duration(took * (1 + 0.05*more)))
	u.mu.Lock()
	u.busy--
	u.mu.Unlock()
	u.freed.Signal()
	_, _ = io.WriteString(w, "ok")
}

// processor computes, on the one processor that it has. So all requests that are inside share it.
func (u *upstream) processor(w http.ResponseWriter, _ *http.Request) {
	block := make([]byte, 64<<10)
	for range int(float64(blocks(u.took)) * (0.5 + rand.ExpFloat64()/2)) {
		sum := sha256.Sum256(block)
		copy(block[rand.IntN(len(block)-len(sum)):], sum[:])
	}
	_, _ = fmt.Fprintf(w, "%x\n", block[:8])
}

// blocks is how many blocks this machine can hash in that time.
func blocks(took time.Duration) int {
	return max(1, int(took/perBlock()))
}

var perBlock = sync.OnceValue(func() time.Duration {
	block, least := make([]byte, 64<<10), time.Hour
	for range 200 {
		began := time.Now()
		sum := sha256.Sum256(block)
		block[0] = sum[0]
		least = min(least, time.Since(began))
	}
	return max(least, time.Microsecond)
})

// connections opens a connection to the database for each request. The request fails if the database has too many.
func (u *upstream) connections(w http.ResponseWriter, _ *http.Request) {
	conn, err := net.Dial("tcp", u.database)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "select\n")
	if answer, err := bufio.NewReader(conn).ReadString('\n'); err != nil || answer != "row\n" {
		http.Error(w, "the database has too many connections", http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, "ok")
}

// serveQueries is a database that refuses connections beyond a limit. Queries disturb each other a little.
func (u *upstream) serveQueries(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			n := u.inside.Add(1)
			defer u.inside.Add(-1)
			if n > int64(u.workers) {
				time.Sleep(u.took / 10) // what a refusal costs
				_, _ = io.WriteString(conn, "too many clients\n")
				return
			}
			if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
				return
			}
			time.Sleep(time.Duration(float64(u.took) * rand.ExpFloat64() * (1 + 0.05*float64(n-1))))
			_, _ = io.WriteString(conn, "row\n")
		}()
	}
}
