//go:build deep

package world

import (
	"bufio"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/simredis"
)

// connect connects to a real server.
func connect(t *testing.T, address string) *real {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &real{conn: conn, in: bufio.NewReader(conn), texts: make(map[string]string)}
}

// twins are a real server and a simulated one.
type twins struct {
	real *real
	sim  interface{ Do(args ...string) []byte }
}

// ids are those of nodes.
var ids = regexp.MustCompile("[0-9a-f]{40}")

// same has both carry out a command, and compares the replies. It returns the one of the real server.
func (p *twins) same(t *testing.T, args ...string) string {
	t.Helper()
	got, want := p.real.do(args...), string(p.sim.Do(args...))
	if digest.ReplaceAllString(ids.ReplaceAllString(got, "ID"), "") != digest.ReplaceAllString(ids.ReplaceAllString(want, "ID"), "") {
		t.Errorf("%.200q:\nreal:      %q\nsimulated: %q", args, got, want)
	}
	return got
}

// TestRealClusterAnswersTheSame has a real Cluster and a simulated one carry out commands before, while and after a
// slot moves. The replies are the same byte for byte.
func TestRealClusterAnswersTheSame(t *testing.T) {
	c := redistest.StartCluster(t, masters, 0)
	table, first := new(simredis.Table), 0
	for i, n := range c.Nodes() {
		behind := (i + 1) * simredis.Slots / masters
		table.Ranges = append(table.Ranges, simredis.Range{First: first, Last: behind - 1, Owner: n.Addr()})
		first = behind
	}
	var nodes []*twins
	var sims []*simredis.Server
	for _, n := range c.Nodes() {
		s := simredis.New(func() int64 { return time.Now().UnixMicro() })
		s.View = simredis.NewView(n.Addr(), table)
		sims = append(sims, s)
		nodes = append(nodes, &twins{connect(t, n.Addr()), &simredis.Session{Server: s}})
	}
	seen := make(map[string]bool)
	all := func(args ...string) {
		t.Helper()
		for _, n := range nodes {
			word, _, _ := strings.Cut(strings.TrimSuffix(n.same(t, args...), "\r\n"), " ")
			seen[word] = true
		}
	}
	everywhere := func() {
		t.Helper()
		all("cluster", "slots")
		for _, keys := range [][]string{{"{k}a"}, {"{k}b"}, {"{k}a", "{k}b"}, {"{k}c", "{k}d"}, {"{k}a", "{l}a"}, {"{l}a"}, {}} {
			call := append([]string{"eval", "return redis.call('TIME') and #KEYS", fmt.Sprint(len(keys))}, keys...)
			all(call...)
			for _, n := range nodes {
				n.same(t, "asking")
				n.same(t, call...)
			}
		}
		for _, unnamed := range []string{"{k}a", "{k}b", "{k}c"} {
			for _, key := range []string{"{k}a", "{k}b"} {
				call := []string{"eval", "return redis.call('GET', ARGV[1])", "1", key, unnamed}
				all(call...)
				for _, n := range nodes {
					n.same(t, "asking")
					n.same(t, call...)
				}
			}
		}
		all("get", "{k}a")
	}
	slot := simredis.Slot("{k}a")
	if real := c.SlotOf("{k}a"); real != int(slot) || c.SlotOf("{}x") != int(simredis.Slot("{}x")) || c.SlotOf("a{b") != int(simredis.Slot("a{b")) {
		t.Fatalf("slot %d, and really %d", slot, real)
	}
	everywhere()
	from := int(slot) * masters / simredis.Slots
	to := (from + 1) % masters
	for _, key := range []string{"{k}a", "{k}b"} {
		nodes[from].same(t, "eval", "return redis.call('SET', KEYS[1], 'x')", "1", key)
	}
	move := c.StartMove(int(slot), c.Nodes()[from], c.Nodes()[to])
	sims[to].View.Coming[slot], sims[from].View.Leaving[slot] = c.Nodes()[from].Addr(), c.Nodes()[to].Addr()
	everywhere()
	if err := c.Nodes()[from].Admin().Do(t.Context(), "migrate", "127.0.0.1", strings.Split(c.Nodes()[to].Addr(), ":")[1], "{k}a", 0, 5000).Err(); err != nil {
		t.Fatal(err)
	}
	sims[from].Give("{k}a", sims[to])
	everywhere()
	move.Finish()
	sims[from].Give("{k}b", sims[to])
	table = table.Moved(slot, c.Nodes()[to].Addr())
	delete(sims[to].View.Coming, slot)
	delete(sims[from].View.Leaving, slot)
	patient.Until(t, "all nodes to know where the slot is", func() bool {
		for _, n := range nodes {
			if !strings.Contains(n.real.do("cluster", "slots"), fmt.Sprintf(":%d\r\n:%d\r\n", slot, slot)) {
				return false
			}
		}
		return true
	})
	for _, s := range sims {
		s.View.Learn(table)
	}
	everywhere()
	for _, word := range []string{"-MOVED", "-ASK", "-TRYAGAIN", "-CROSSSLOT"} {
		if !seen[word] {
			t.Errorf("no %s was compared", word)
		}
	}
}

// TestRealSentinelAnswersTheSame: the replies of a real Sentinel and of a simulated one to what a store asks.
func TestRealSentinelAnswersTheSame(t *testing.T) {
	g := redistest.StartSentinel(t, nil, nil)
	master := g.Master()
	s := &simredis.Sentinel{Name: redistest.MasterName, Master: master.Addr()}
	p := &twins{connect(t, g.Addrs()[0]), s}
	p.same(t, "sentinel", "get-master-addr-by-name", redistest.MasterName)
	about, simulated := p.real.do("sentinel", "master", redistest.MasterName), string(s.Do("sentinel", "master", redistest.MasterName))
	for _, field := range []string{"name", "ip", "port", "flags", "config-epoch"} {
		value := regexp.MustCompile(fmt.Sprintf(`\$\d+\r\n%s\r\n\$\d+\r\n[^\r]*\r\n`, field))
		if got, want := value.FindString(about), value.FindString(simulated); got == "" || got != want {
			t.Errorf("%s: %q, simulated %q", field, got, want)
		}
	}
	g.Failover()
	s.Switch(g.AwaitSwitch(master).Addr(), 1)
	p.same(t, "sentinel", "get-master-addr-by-name", redistest.MasterName)
}

// TestRealReplicaAnswersTheSame: the replies of a replica that has no master, and must not tell old data.
func TestRealReplicaAnswersTheSame(t *testing.T) {
	server := redistest.Start(t)
	server.Configure("replica-serve-stale-data", "no")
	sim := simredis.New(func() int64 { return 0 })
	sim.Refuses, sim.Readonly = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", true
	p := &twins{connect(t, server.Addr()), &simredis.Session{Server: sim}}
	p.real.do("replicaof", "127.0.0.1", "1")
	p.same(t, "eval", "return 1", "0")
	p.same(t, "eval", "return redis.call('GET', KEYS[1])", "1", "k")
	p.same(t, "get", "k")
	p.same(t, "del", "k")
	if now := p.real.do("time"); now[0] != '*' || p.sim.Do("time")[0] != '*' {
		t.Errorf("time: %q", now)
	}
}
