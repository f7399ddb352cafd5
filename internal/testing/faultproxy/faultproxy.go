// Package faultproxy is a proxy between a client and a Redis in tests that loses what networks
// lose: requests, replies, halves of replies, and whole connections.
package faultproxy

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/simredis"
)

// Fault is what happens to one command and its reply.
type Fault int

// The faults. After [CutBefore] and [SwallowCommand], the command was not carried out. After all
// others it was, because they begin when the reply comes.
const (
	None           Fault = iota
	CutBefore            // closes the connection instead of forwarding the command
	CutAfter             // closes the connection when the reply comes
	CutWithin            // passes on half of the reply, and closes the connection
	Late                 // passes the reply on, but only after some time
	SwallowCommand       // drops the command; the connection stays open and is dead
	SwallowReply         // drops the reply; the connection stays open and is dead
	faults
)

var names = [faults]string{"none", "cut before", "cut after", "cut within", "late", "swallow command", "swallow reply"}

// String returns the fault's name, for logs.
func (f Fault) String() string { return names[f] }

// Lateness is how long a reply takes with the fault [Late].
const Lateness = 500 * time.Millisecond

// Proxy forwards connections to one server. Its methods may be called at any time.
type Proxy struct {
	server   atomic.Pointer[string]
	listener net.Listener
	choose   atomic.Pointer[func(command string) Fault]
	rewrite  atomic.Pointer[func(command string, reply []byte) []byte]
	delay    atomic.Int64
	counts   [faults]atomic.Int64

	ends context.Context // with the test, and all connections with it
	end  context.CancelFunc
	wait sync.WaitGroup
}

// Start starts a proxy without faults, and stops it with the test.
func Start(t testing.TB, server string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener}
	p.ends, p.end = context.WithCancel(context.Background())
	p.Forward(server)
	p.wait.Go(p.accept)
	t.Cleanup(p.stop)
	return p
}

// Addr returns the address for clients.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Forward has new connections lead to another server. Those that are open stay.
func (p *Proxy) Forward(server string) { p.server.Store(&server) }

// Inject has a function choose the fault of each command. The function gets the command's name in
// lower case, and may be called by several goroutines at once. With nil there are no faults.
func (p *Proxy) Inject(choose func(command string) Fault) { p.choose.Store(&choose) }

// Rewrite has a function change the replies. The function gets the name of the command in lower case.
// It may be called by several goroutines at once.
func (p *Proxy) Rewrite(change func(command string, reply []byte) []byte) { p.rewrite.Store(&change) }

// Delay delays all replies from now on.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// Count returns how many commands had a fault.
func (p *Proxy) Count(f Fault) int { return int(p.counts[f].Load()) }

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", *p.server.Load())
		if err != nil {
			_ = client.Close()
			continue
		}
		p.wait.Go(func() { p.carry(client, server) })
	}
}

func (p *Proxy) stop() {
	_ = p.listener.Close()
	p.end()
	p.wait.Wait()
}

// carry forwards commands until either side closes the connection.
func (p *Proxy) carry(client, server net.Conn) {
	hangUp := func() {
		_ = client.Close()
		_ = server.Close()
	}
	defer hangUp()
	defer context.AfterFunc(p.ends, hangUp)()
	var fate atomic.Int64    // of the next reply
	var command atomic.Value // the name of its command
	p.wait.Go(func() {
		defer hangUp()
		p.replies(client, server, &fate, &command)
	})
	var asked []byte
	for buffer := make([]byte, 64<<10); len(asked) == 0 || asked[0] == '*'; {
		args, rest := simredis.Command(asked)
		if args == nil {
			n, err := client.Read(buffer)
			if err != nil {
				return
			}
			asked = append(asked, buffer[:n]...)
			continue
		}
		name, raw := strings.ToLower(args[0]), asked[:len(asked)-len(rest)]
		asked = rest
		command.Store(name)
		fault := None
		if choose := p.choose.Load(); choose != nil && *choose != nil {
			fault = (*choose)(name)
		}
		p.counts[fault].Add(1)
		switch fault {
		case CutBefore:
			return
		case SwallowCommand:
			_, _ = io.Copy(io.Discard, client)
			return
		}
		fate.Store(int64(fault))
		if _, err := server.Write(raw); err != nil {
			return
		}
	}
}

// replies passes on the server's replies.
func (p *Proxy) replies(client, server net.Conn, fate *atomic.Int64, command *atomic.Value) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		reply := buffer[:n]
		if change := p.rewrite.Load(); change != nil {
			name, _ := command.Load().(string)
			reply = (*change)(name, reply)
		}
		time.Sleep(time.Duration(p.delay.Load()))
		switch Fault(fate.Swap(int64(None))) {
		case CutAfter:
			return
		case CutWithin:
			_, _ = client.Write(reply[:len(reply)/2])
			return
		case SwallowReply:
			_, _ = io.Copy(io.Discard, server)
			return
		case Late:
			time.Sleep(Lateness)
		}
		if _, err := client.Write(reply); err != nil {
			return
		}
	}
}
