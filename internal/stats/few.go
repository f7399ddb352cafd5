package stats

import (
	"net"
	"net/http"
	"sync/atomic"
)

// Few counts requests up to a bound. Later ones only read a number.
type Few struct{ n atomic.Uint64 }

const maxFew = 1000

// Add counts a request.
func (f *Few) Add() {
	if f.n.Load() < maxFew {
		f.n.Add(1)
	}
}

// Note counts the requests of a server. It is called when a connection changes its state, so of HTTP/2 it counts a few requests, and
// of HTTP/3 none.
func (f *Few) Note(_ net.Conn, state http.ConnState) {
	if state == http.StateActive {
		f.Add()
	}
}

// Count returns how many there were.
func (f *Few) Count() uint64 { return f.n.Load() }
