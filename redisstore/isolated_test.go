package redisstore_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// isolated is a master that is cut off from its Cluster, but not from clients. It always says
// which node had which slots before, and answers CLUSTERDOWN to everything else.
type isolated struct {
	net.Listener
	table atomic.Pointer[string]
	looks atomic.Int64 // how often clients have asked for the table
}

func newIsolated(t *testing.T) *isolated {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	n := &isolated{Listener: listener}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go n.serve(conn)
		}
	}()
	return n
}

// serve answers one command after the other. Each is an array of strings.
func (n *isolated) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		words, err := readCommand(r)
		if err != nil {
			return
		}
		switch words[0] {
		case "cluster":
			n.looks.Add(1)
			_, err = io.WriteString(conn, *n.table.Load())
		case "hello":
			_, err = io.WriteString(conn, "-ERR unknown command\r\n")
		case "client":
			_, err = io.WriteString(conn, "+OK\r\n")
		default:
			_, err = io.WriteString(conn, "-CLUSTERDOWN The cluster is down\r\n")
		}
		if err != nil {
			return
		}
	}
}

func readCommand(r *bufio.Reader) (words []string, err error) {
	number := func() (n int) {
		line, readErr := r.ReadString('\n')
		if readErr != nil {
			err = readErr
			return 0
		}
		n, err = strconv.Atoi(strings.TrimSpace(line[1:]))
		return n
	}
	for n := number(); n > 0 && err == nil; n-- {
		word := make([]byte, number()+2)
		if err == nil {
			_, err = io.ReadFull(r, word)
		}
		words = append(words, strings.ToLower(string(word[:len(word)-2])))
	}
	if err == nil && len(words) == 0 {
		err = io.ErrUnexpectedEOF
	}
	return words, err
}

// knows sets the table: the owners of three equal ranges of slots.
func (n *isolated) knows(addresses ...string) {
	text := fmt.Sprintf("*%d\r\n", len(addresses))
	for i, address := range addresses {
		host, port, _ := net.SplitHostPort(address)
		text += fmt.Sprintf("*3\r\n:%d\r\n:%d\r\n*3\r\n$%d\r\n%s\r\n:%s\r\n$40\r\n%040d\r\n",
			i*16384/len(addresses), (i+1)*16384/len(addresses)-1, len(host), host, port, i)
	}
	n.table.Store(&text)
}

// TestIsolatedMaster: what a master says about the slots does not count while it is cut off,
// however fast it answers, even if healthy nodes fail and all nodes are asked again.
func TestIsolatedMaster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 1)
	replaceNone(c)
	old := newIsolated(t)
	well, lost := c.Nodes()[0], c.Nodes()[2]
	old.knows(old.Addr().String(), c.Nodes()[1].Addr(), lost.Addr())
	s := open(t, redisstore.Options{
		Mode: redisstore.ModeCluster, Addresses: append([]string{old.Addr().String()}, c.Addrs()[:3]...), DenyCache: -1,
	})
	s.SetPatience(time.Minute) // because the machine may be busy
	rule := hourly(t)
	_ = attempt(s, rule)
	tag := "client"
	for c.MasterOf(s.Key(rule, tag)) != well {
		tag += "x"
	}
	believed := func() {
		t.Helper()
		if address, _ := s.NodeOf(s.Key(rule, tag)); address != well.Addr() {
			t.Fatalf("the slot is thought to be at %s, and is at %s", address, well.Addr())
		}
		take(t, s, rule, tag, 1)
	}
	patient.Until(t, "the slot to be found", func() bool { address, _ := s.NodeOf(s.Key(rule, tag)); return address == well.Addr() })
	look := func() {
		n := old.looks.Load()
		patient.Until(t, "a look to end and another to begin", func() bool {
			s.ReportFailure()
			return old.looks.Load() >= n+2
		})
	}
	for range 10 {
		look()
		believed()
	}

	// All others of the Cluster are lost but one, so each of the two tables has one vote.
	for i, node := range c.Nodes() {
		if i != 0 && i != 1 {
			node.Kill()
		}
	}
	c.Nodes()[1].Kill()
	gone := tagAt(c, s, rule, lost, "gone")
	for range 10 {
		_ = s.Take(context.Background(), []store.Check{{Rule: rule, Key: gone, Cost: 1}}, make([]algorithms.Decision, 1))
		look()
		believed()
	}
}

// TestIsolatedMasterAlone: what such a master says counts as long as it is the only one.
func TestIsolatedMasterAlone(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 1, 0)
	old := newIsolated(t)
	old.knows(old.Addr().String())
	s := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: []string{old.Addr().String()}, Timeout: time.Second})
	if err := attempt(s, hourly(t)); err == nil {
		t.Fatal("decided without a Cluster")
	}
	old.knows(c.Nodes()[0].Addr())
	patient.Until(t, "the store to answer", func() bool { return attempt(s, hourly(t)) == nil })
}
