package node

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/simredis"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestHostileRedis: a server whose answers to scripts are larger than any reply makes this
// process allocate little and log little.
func TestHostileRedis(t *testing.T) {
	const calls = 10
	for name, c := range map[string]struct {
		reply   string
		endless bool // its end is repeated as long as it is read
		bounded bool // it is not read to its end
	}{
		"a string of 512 MB":      {reply: "$536870912\r\n", bounded: true},
		"a string without bounds": {reply: "$99999999999999999999999\r\n", bounded: true},
		"a blob error":            {reply: "!+536870912\r\n", bounded: true},
		"an array":                {reply: "*+01000000000\r\n", bounded: true},
		"nested arrays":           {reply: strings.Repeat("*300000\r\n", 1000), bounded: true},
		"deep arrays":             {reply: strings.Repeat("*1\r\n", 100), bounded: true},
		"attributes":              {reply: strings.Repeat("|0\r\n", 100), bounded: true},
		"an endless status":       {reply: "+" + strings.Repeat("x", 1<<16), endless: true, bounded: true},
		"an endless length":       {reply: "$" + strings.Repeat("1", 1<<16), endless: true, bounded: true},
		"an error of 1.2 MB":      {reply: "-ERR " + strings.Repeat("\x1b[31mA", 200_000) + "\r\n", bounded: true},
		"an error of 60 KB":       {reply: "-ERR " + strings.Repeat("\x1b[31mA", 10_000) + "\r\n"},
		"a strange line of 60 KB": {reply: strings.Repeat("\x1b[31mA", 10_000) + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			address := answering(t, func(to io.Writer) {
				_, err := io.WriteString(to, c.reply)
				for c.endless && err == nil {
					_, err = io.WriteString(to, c.reply[1:])
				}
			})
			n := open(t, address, 10*time.Second)
			rule := storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 1, Window: time.Hour})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range calls {
				err := n.Do(t.Context(), request(rule, "client", 1), false)
				if err == nil || c.bounded && !errors.Is(err, errReply) || len(err.Error()) > 2*maxErrorText {
					t.Fatalf("%.400v", err)
				}
			}
			runtime.ReadMemStats(&after)
			if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > calls*2*maxReply>>20 {
				t.Errorf("%d calls took %d MB", calls, mb)
			}
		})
	}
}

// answering is a server that accepts all commands and answers scripts in its own way.
func answering(t *testing.T, answer func(io.Writer)) (address string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				var asked []byte
				for buffer := make([]byte, 4096); err == nil; {
					args, rest := simredis.Command(asked)
					if args == nil {
						var n int
						n, err = conn.Read(buffer)
						asked = append(asked, buffer[:n]...)
						continue
					}
					switch asked = rest; strings.ToLower(args[0]) {
					case "hello":
						_, err = io.WriteString(conn, "-ERR unknown command\r\n")
					case "evalsha", "eval":
						answer(conn)
					default:
						_, err = io.WriteString(conn, "+OK\r\n")
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// TestReplyBound: possible replies pass, in whatever pieces they come, and the content of a
// string is no length.
func TestReplyBound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	bulk := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	legal := []string{
		"+OK\r\n", "-ERR no\r\n", ":-5\r\n", "$-1\r\n", "*-1\r\n", "_\r\n", ",1.5\r\n", "#t\r\n", "(12345678901234567890\r\n",
		bulk(""), bulk("\r\n"), bulk("$99999999\r\n*99999999\r\n"), bulk(strings.Repeat("\n", 5000)),
		"*2\r\n" + bulk("a") + "*1\r\n:1\r\n", strings.Repeat("*1\r\n", maxDepth) + "*0\r\n", "%1\r\n+a\r\n:1\r\n", "=7\r\ntxt:abc\r\n", "!5\r\nERR x\r\n",
	}
	for range 2000 {
		var r replyBound
		for range 1 + random.IntN(20) {
			r.size, r.elements = 0, 0 // as a new command does
			for reply := legal[random.IntN(len(legal))]; reply != ""; {
				n := 1 + random.IntN(len(reply))
				if err := r.read([]byte(reply[:n])); err != nil {
					t.Fatalf("%q: %v", reply, err)
				}
				reply = reply[n:]
			}
		}
		illegal := []string{"$+4194305\r\n", "*524289\r\n", "%600000\r\n", strings.Repeat("x", maxLine+2), strings.Repeat("%1\r\n+a\r\n", maxDepth+1)}[random.IntN(5)]
		err := error(nil)
		for illegal != "" && err == nil {
			n := 1 + random.IntN(len(illegal))
			err = r.read([]byte(illegal[:n]))
			illegal = illegal[n:]
		}
		if !errors.Is(err, errReply) {
			t.Fatalf("got %v", err)
		}
	}
	var r replyBound
	for n := 0; n <= maxReply; n += 1 << 16 {
		if err := r.read([]byte(bulk(strings.Repeat("x", 1<<16)))); (err != nil) != (r.size > maxReply) {
			t.Fatalf("after %d bytes: %v", r.size, err)
		}
	}
}

// TestBrokenWhileIdle: of an encrypted connection nobody knows that Redis has broken it, until something is written.
// Nothing was sent then, so that the call takes another connection.
func TestBrokenWhileIdle(t *testing.T) {
	ours, server := pair(t)
	socket := ours.Conn
	conn := bound(struct{ net.Conn }{socket}) // no syscall.Conn, as with TLS
	if _, err := server.Write([]byte("+PONG\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 7)); err != nil {
		t.Fatal(err)
	}
	must(t, server.(*net.TCPConn).SetLinger(0))
	server.Close()
	if _, err := socket.Read(make([]byte, 1)); err == nil { // waits until that is here
		t.Fatal("the server has sent something")
	}
	if _, err := conn.Write([]byte("*1\r\n$4\r\nPING\r\n")); !errors.Is(err, errIdle) {
		t.Errorf("a write to a broken connection: %v", err)
	}
}

// TestWriteAfterItsDeadline: a process that did not run until the deadline of a write has still written what there is room for.
func TestWriteAfterItsDeadline(t *testing.T) {
	conn, server := pair(t)
	must(t, conn.SetWriteDeadline(time.Now().Add(time.Hour)))
	if err := conn.Conn.SetWriteDeadline(time.Now().Add(-time.Second)); err != nil { // as when it comes just before the write
		t.Fatal(err)
	}
	const ping = "*1\r\n$4\r\nPING\r\n"
	if n, err := conn.Write([]byte(ping)); n != len(ping) || err != nil {
		t.Errorf("%d bytes of %d were written, %v", n, len(ping), err)
	}
	conn.Conn.Close()
	if got, err := io.ReadAll(server); string(got) != ping {
		t.Errorf("the server has received %q, %v", got, err)
	}
}

// counted counts how often deadlines are set.
type counted struct {
	net.Conn
	sets int
}

func (c *counted) SetReadDeadline(t time.Time) error {
	c.sets++
	return c.Conn.SetReadDeadline(t)
}

func (c *counted) SetWriteDeadline(t time.Time) error {
	c.sets++
	return c.Conn.SetWriteDeadline(t)
}

// TestPostponedDeadlines: writes and reads end exactly when their deadlines are over, although these are rarely set, and when they
// have also looked for room or what has come.
func TestPostponedDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		defer theirs.Close()
		counts := &counted{Conn: ours}
		c := &bounded{Conn: counts, socket: struct{ syscall.RawConn }{}}
		const timeout = time.Second
		set := func() time.Time {
			deadline := time.Now().Add(timeout)
			must(t, errors.Join(c.SetWriteDeadline(deadline), c.SetReadDeadline(deadline)))
			return deadline
		}
		go func() { // answers, until the test has seen enough answers
			b := make([]byte, 10)
			for range 1000 {
				_, _ = theirs.Read(b)
				time.Sleep(time.Millisecond)
				_, _ = theirs.Write([]byte("+OK\r\n"))
			}
		}()
		b := make([]byte, 10)
		for range 1000 {
			set()
			if _, err := c.Write([]byte("ping")); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(b); err != nil {
				t.Fatal(err)
			}
		}
		if counts.sets > 2*1000/100 {
			t.Errorf("deadlines were set %d times in 1000 calls", counts.sets)
		}
		for what, wait := range map[string]func([]byte) (int, error){"read": c.Read, "write": c.Write} {
			must(t, c.SetDeadline(time.Time{}))
			set()
			time.Sleep(timeout / 10) // so little that the next deadline is a postponed one
			c.used = time.Time{}     // nobody looks whether the connection was closed
			deadline := set().Add(maxLooks * lookTime)
			if _, err := wait(b); !errors.Is(err, os.ErrDeadlineExceeded) || !time.Now().Equal(deadline) {
				t.Errorf("a %s ended with %v, %v after its deadline", what, err, time.Since(deadline))
			}
		}
		soon := time.Now().Add(timeout / 100)
		must(t, c.SetReadDeadline(soon))
		soon = soon.Add(maxLooks * lookTime)
		if _, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) || !time.Now().Equal(soon) {
			t.Errorf("a read with an earlier deadline ended with %v, %v after it", err, time.Since(soon))
		}
		must(t, c.SetDeadline(time.Time{}))
		sets := counts.sets
		if set(); counts.sets != sets+2 {
			t.Error("a deadline after none was not set")
		}
	})
}

// A link that was put back for the first time comes with all that was noted about it. The race detector checks that.
func TestLinkIsPutBackWhole(t *testing.T) {
	const rounds = 200
	l := &links{used: make(chan struct{}, 2)}
	var all sync.WaitGroup
	all.Go(func() {
		for range rounds {
			l.used <- struct{}{}
			l.put(&link{made: time.Now()}, true)
		}
	})
	all.Go(func() {
		for taken := 0; taken < rounds; {
			if link := l.get(); link != nil {
				taken++
				if !link.up {
					t.Error("a link is free that was not used")
				}
				<-l.used // it is not put back
			}
		}
	})
	all.Wait()
	if n := l.count.Load(); n != rounds {
		t.Errorf("got %d links, want %d", n, rounds)
	}
}
