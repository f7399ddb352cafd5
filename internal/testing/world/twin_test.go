//go:build deep

package world

import (
	"bufio"
	"crypto/sha1" // by which Redis names scripts
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestRealRedisAnswersTheSame has a real server carry out what the one in this process was asked in some worlds, in the
// same states and at the same times, and compares the replies byte for byte.
func TestRealRedisAnswersTheSame(t *testing.T) {
	server := redistest.Start(t)
	kinds := make(map[string]int)
	for range 12 {
		p := Draw(rand.Uint64())
		p.Events = slices.DeleteFunc(p.Events, func(e Event) bool {
			return operations[e.Kind].sort == servers || e.Kind == Loading
		})
		p.Layout = Single
		h := Run(t, p)
		for again := true; again; {
			again = replay(t, h, server.Addr(), kinds)
		}
	}
	t.Logf("replies compared: %v", kinds)
}

// replay reports whether it took so long that keys may have expired.
func replay(t *testing.T, h *History, address string, kinds map[string]int) (again bool) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := &real{conn: conn, in: bufio.NewReader(conn), texts: make(map[string]string)}
	defer func() { r.be(State{}) }()
	r.do("FLUSHALL")
	r.do("SCRIPT", "FLUSH") // each call has a text of its own
	began := time.Now()
	compared := 0
	for _, c := range h.Commands {
		got, ok := r.repeat(&c)
		if want := digest.ReplaceAllString(string(c.Reply), "script: X"); ok && digest.ReplaceAllString(got, "script: X") != want {
			if time.Since(began) > time.Second/2 {
				return true
			}
			t.Fatalf("seed %d, %v in state %+v:\n%.300q\nreal:      %q\nsimulated: %q\n%s", h.Plan.Seed, c.At, c.State, c.Args[2:], got, want, h.Plan.Source())
		}
		if ok {
			compared++
			word, _, _ := strings.Cut(got, " ")
			if word[0] != '-' {
				word = word[:1]
			}
			kinds[word]++
		}
	}
	if compared == 0 {
		t.Errorf("seed %d: nothing was compared", h.Plan.Seed)
	}
	return false
}

var digest = regexp.MustCompile("script: [0-9a-f]{40}")

// real is a real server.
type real struct {
	conn  net.Conn
	in    *bufio.Reader
	state State
	texts map[string]string // of scripts, by digest
}

// repeat has it carry out a command. It reports whether the reply means something.
func (r *real) repeat(c *Command) (reply string, compare bool) {
	switch c.Args[0] {
	case Expired:
		r.be(State{})
		r.do("DEL", c.Args[1])
		return "", false
	case "eval":
		r.texts[fmt.Sprintf("%x", sha1.Sum([]byte(c.Args[1])))] = c.Args[1]
	case "evalsha":
		if strings.HasPrefix(string(c.Reply), "-NOSCRIPT") {
			return "", false
		}
	case "del", "get":
	default:
		return "", false
	}
	r.be(c.State)
	args := slices.Clone(c.Args)
	if args[0] == "evalsha" {
		args[0], args[1] = "eval", r.texts[args[1]]
	}
	if args[0] == "eval" {
		clock := fmt.Sprintf("{'%d','%d'}", c.Clock/1e6, c.Clock%1e6)
		args[1] = strings.ReplaceAll(args[1], "redis.call('TIME')", clock)
	}
	return r.do(args...), true
}

// be brings it into a state.
func (r *real) be(s State) {
	set := func(is, was bool, on, off string) {
		if is != was {
			command := off
			if is {
				command = on
			}
			r.do(strings.Fields(command)...)
		}
	}
	set(s.Forbidden, r.state.Forbidden, "ACL SETUSER default -set -setrange -rpush -zadd", "ACL SETUSER default +@all")
	set(s.Full, r.state.Full, "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0")
	set(s.Alone, r.state.Alone, "CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0")
	set(s.Readonly, r.state.Readonly, "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE")
	r.state = s
}

// do returns the reply to a command as it came.
func (r *real) do(args ...string) string {
	text := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := r.conn.Write([]byte(text)); err != nil {
		panic(err)
	}
	return r.read()
}

func (r *real) read() string {
	line, err := r.in.ReadString('\n')
	if err != nil {
		panic(err)
	}
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	switch line[0] {
	case '$':
		if n >= 0 {
			rest := make([]byte, n+2)
			for at := 0; at < len(rest); {
				more, err := r.in.Read(rest[at:])
				if err != nil {
					panic(err)
				}
				at += more
			}
			line += string(rest)
		}
	case '*':
		for range n {
			line += r.read()
		}
	}
	return line
}
