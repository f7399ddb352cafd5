package topology

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
)

// TestAddress: what a server calls another one is an address, in each form that Redis 6 to 8 and Valkey 8 and 9 write.
func TestAddress(t *testing.T) {
	const from = "[2001:db8::1]:6379"
	for said, want := range map[string]string{ // of MOVED and ASK
		"10.0.0.2:6379":           "10.0.0.2:6379",
		"redis-2:6379":            "redis-2:6379",
		"redis-2.internal.:6379":  "redis-2.internal.:6379",
		"2001:db8::2:6379":        "[2001:db8::2]:6379",
		"[2001:db8::2]:6379":      "[2001:db8::2]:6379",
		"::1:6379":                "[::1]:6379",
		"fe80::1%eth0:6379":       "[fe80::1%eth0]:6379",
		"::ffff:127.0.0.2:7001":   "127.0.0.2:7001",
		"[::ffff:127.0.0.2]:7001": "127.0.0.2:7001",
		":6380":                   "[2001:db8::1]:6380",
		"?:6380":                  "[2001:db8::1]:6380",
		"10.0.0.2:0":              "",
		"10.0.0.2:":               "",
		"10.0.0.2:65536":          "",
		"":                        "",
	} {
		if got, err := readName(said).address(from); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is at %q, want %q; %v", said, got, want, err)
		}
	}
	for _, c := range []struct { // of CLUSTER SLOTS, and of Sentinels without the rest
		host  any
		added []any
		want  string
	}{
		{"10.0.0.2", nil, "10.0.0.2:6379"},
		{"2001:db8::2", nil, "[2001:db8::2]:6379"},
		{"[2001:db8::2]", nil, "[2001:db8::2]:6379"},
		{"::ffff:127.0.0.2", nil, "127.0.0.2:6379"},
		{"", nil, "[2001:db8::1]:6379"}, // one that nobody has met
		{nil, nil, "[2001:db8::1]:6379"},
		{"?", nil, "[2001:db8::1]:6379"},
		{"?", []any{"ip", "10.0.0.2"}, "10.0.0.2:6379"},
		{nil, []any{"ip", "10.0.0.2"}, "10.0.0.2:6379"},
		{nil, []any{"ip", "10.0.0.2", "hostname", "redis-2"}, "10.0.0.2:6379"},
		{nil, []any{"hostname", "redis-2"}, "[2001:db8::1]:6379"},
		{"?", []any{"ip", "2001:db8::2"}, "[2001:db8::2]:6379"},
		{"?", []any{"ip", ""}, "[2001:db8::1]:6379"},
		{"redis-2", []any{"ip", "10.0.0.2"}, "redis-2:6379"},
		{"10.0.0.2", []any{"hostname", "redis-2"}, "10.0.0.2:6379"},
		{"10.0.0.2", []any{"hostname"}, "10.0.0.2:6379"}, // cut off
	} {
		master := []any{c.host, int64(6379), "id"}
		if c.added != nil {
			master = append(master, c.added)
		}
		replica := []any{"10.0.0.9", int64(6379), "id"}
		got, err := readSlots(from, []any{[]any{int64(0), int64(5), master, replica}, []any{int64(6), int64(7)}})
		if err != nil || len(got) != 1 || got[0].first != 0 || got[0].last != 5 || got[0].address != c.want {
			t.Errorf("%v, %v: %v, want %q; %v", c.host, c.added, got, c.want, err)
		}
	}
	for _, answer := range []any{
		"",
		[]any{},
		[]any{int64(0)},
		[]any{"0", int64(1)},
		[]any{int64(0), int64(Slots), nil},
		[]any{int64(2), int64(1)},
		[]any{int64(0), int64(1), []any{"10.0.0.2"}},
		[]any{int64(0), int64(1), []any{"10.0.0.2", int64(0)}},
	} {
		if got, err := readSlots(from, []any{answer}); err == nil {
			t.Errorf("%v: %v", answer, got)
		}
	}
}

// TestRedirect: a call goes where the node says that answered it, whatever node has the slot as far as is known.
func TestRedirect(t *testing.T) {
	const slot = 5
	for name, c := range map[string]struct {
		known string // the owner, and others
		from  string
		said  string
		hops  []string // where the call goes, as often as the same is said
		moves bool     // the first of them is the new owner
	}{
		"ASK":                     {"10.0.0.1:1", "10.0.0.1:1", "ASK 5 10.0.0.2:2", []string{"10.0.0.2:2"}, false},
		"MOVED":                   {"10.0.0.1:1", "10.0.0.1:1", "MOVED 5 10.0.0.2:2", []string{"10.0.0.2:2"}, true},
		"IPv6":                    {"[fd00::1]:1", "[fd00::1]:1", "ASK 5 fd00::2:2", []string{"[fd00::2]:2"}, false},
		"the host that answers":   {"10.0.0.1:1", "10.0.0.2:2", "MOVED 5 :3", []string{"10.0.0.2:3"}, true},
		"?, and one has the port": {"10.0.0.1:1 10.0.0.2:2 10.0.0.3:3", "10.0.0.1:1", "MOVED 5 ?:3", []string{"10.0.0.3:3"}, true},
		"?, and some have the port": {
			"10.0.0.1:1 10.0.0.2:1 10.0.0.3:1", "10.0.0.1:1", "ASK 5 ?:1",
			[]string{"10.0.0.2:1", "10.0.0.2:1", "10.0.0.3:1", "10.0.0.3:1", "10.0.0.2:1"},
			false,
		},
		"?, and the owner has it": {"10.0.0.1:1 10.0.0.2:1 10.0.0.3:1", "10.0.0.2:1", "MOVED 5 ?:1", []string{"10.0.0.1:1"}, true},
		"the node itself":         {"10.0.0.1:1", "10.0.0.1:1", "MOVED 5 :1", []string{"10.0.0.1:1"}, true},
	} {
		cluster := NewCluster(nil, &node.Config{Timeout: time.Second}, zap.NewNop)
		at := func(address string) *node.Node {
			n, err := cluster.at(address)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		for _, known := range strings.Fields(c.known) {
			at(known)
		}
		owner, from := at(strings.Fields(c.known)[0]), at(c.from)
		cluster.table[slot].Store(owner)
		said := reply(c.said)
		for i, want := range c.hops {
			to, asking, err := cluster.Redirect(t.Context(), from, slot, said, i+1)
			if err != nil || to.Address != want || asking != strings.HasPrefix(c.said, "ASK") {
				t.Fatalf("%s, hop %d: %v, want %s; %v", name, i+1, to, want, err)
			}
		}
		if moved := cluster.owner(slot).Address == c.hops[0]; moved != c.moves {
			t.Errorf("%s: the slot is at %s", name, cluster.owner(slot).Address)
		}
		if _, _, err := cluster.Redirect(t.Context(), from, slot, said, maxHops+1); !errors.As(err, new(redis.Error)) ||
			strings.Contains(err.Error(), "cluster-preferred-endpoint-type") != (strings.Contains(c.said, "?") || strings.Contains(c.said, " :")) {
			t.Errorf("%s, in the end: %v", name, err)
		}
		_ = cluster.Close()
	}
}

// reply is an error that a server has answered.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// panel are servers that are asked by surveys, and answer as a test wants.
type panel struct {
	*Topology
	answers map[string]func(ctx context.Context) error // of those that are asked
	lines   *observer.ObservedLogs
}

// newPanel starts to ask some servers, which answer at once.
func newPanel(t *testing.T, every time.Duration, addresses ...string) *panel {
	core, lines := observer.New(zapcore.InfoLevel)
	p := &panel{newTopology(1, &node.Config{Timeout: time.Second}), make(map[string]func(context.Context) error), lines}
	p.every, p.logger = every, func() *zap.Logger { return zap.New(core) }
	for _, address := range addresses {
		p.answers[address] = well
	}
	p.explain = func(err error) error { return err }
	p.questions = func() (questions []question, _ error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for address, answer := range p.answers {
			questions = append(questions, question{address, func(ctx context.Context) (report, error) { return report{}, answer(ctx) }})
		}
		return questions, nil
	}
	if err := p.wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	p.ReportFailure() // which wait has done, unless the answers came before it looked
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// will has a server answer so from now on; nil: it is no longer asked.
func (p *panel) will(address string, answer func(ctx context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers[address] = answer; answer == nil {
		delete(p.answers, address)
	}
}

func well(context.Context) error { return nil }

func broken(context.Context) error { return errors.New("broken") }

// hung answers nothing until it is asked no longer.
func hung(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// slow answers after the patience.
func slow(context.Context) error {
	time.Sleep(500 * time.Millisecond)
	return nil
}

// told returns the lines of the log so far, and who is silent.
func (p *panel) told() string {
	var all []string
	for _, l := range p.lines.All() {
		address := l.ContextMap()["address"]
		switch {
		case strings.HasSuffix(l.Message, "answers again"):
			all = append(all, fmt.Sprintf("%v answers", address))
		case l.Level == zapcore.WarnLevel:
			all = append(all, fmt.Sprintf("%v silent", address))
		}
	}
	for _, s := range p.Silent() {
		all = append(all, fmt.Sprintf("%s: %v for %v", s.Address, s.Err, time.Since(s.Since).Round(time.Second)))
	}
	return strings.Join(all, ", ")
}

func (p *panel) expect(t *testing.T, when, want string) {
	t.Helper()
	synctest.Wait()
	if got := p.told(); got != want {
		t.Errorf("%s: %q, want %q", when, got, want)
	}
}

// TestSilence: a server that fails or hangs for three seconds is silent, which is logged once, as is the end.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPanel(t, 1300*time.Millisecond, "a", "b", "c") // so that nothing coincides with the end of an answer
		p.will("b", broken)
		p.will("c", hung)
		time.Sleep(3 * time.Second)
		p.expect(t, "before three seconds", "")
		time.Sleep(3 * time.Second)
		p.expect(t, "after them", "b silent, c silent, b: broken for 6s, c: context deadline exceeded for 5s")
		p.will("b", well)
		time.Sleep(time.Minute)
		p.expect(t, "after a minute", "b silent, c silent, b answers, c: context deadline exceeded for 1m5s")
		p.will("c", nil)
		time.Sleep(2 * time.Second)
		p.expect(t, "without c", "b silent, c silent, b answers")
	})
}

// TestSlowIsNotSilent: a server whose answers come after those of the others is not silent.
func TestSlowIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPanel(t, time.Second, "a", "far")
		p.will("far", slow)
		time.Sleep(time.Minute)
		p.expect(t, "in a minute", "")
	})
}

// TestSilenceBetweenRefreshes: a server that has failed or hangs is asked again after three seconds, however
// rarely all are asked.
func TestSilenceBetweenRefreshes(t *testing.T) {
	for name, answer := range map[string]func(context.Context) error{"broken": broken, "context deadline exceeded": hung} {
		synctest.Test(t, func(t *testing.T) {
			p := newPanel(t, time.Hour, "a", "b")
			p.will("b", answer)
			p.ReportFailure()
			time.Sleep(8 * time.Second)
			p.expect(t, "after eight seconds", fmt.Sprintf("b silent, b: %s for %s", name, map[string]string{"broken": "8s", "context deadline exceeded": "7s"}[name]))
			p.will("b", well)
			time.Sleep(4 * time.Second)
			p.expect(t, "when it answers", "b silent, b answers")
		})
	}
}

// TestLatestEpochWins: the slots are where the server says that knows of the latest failover. A minority that knows less than
// was known before is behind, and a majority was set up again. What nobody names stays where it is.
func TestLatestEpochWins(t *testing.T) {
	all := func(epoch int64, address string) report {
		return report{epoch, []slotRange{{0, Slots - 1, address, ""}}}
	}
	var script atomic.Pointer[protocol.Script]
	script.Store(protocol.NewScript(nil))
	done := make(chan struct{})
	close(done) // so nodes connect only once
	topology := NewCluster(nil, &node.Config{Timeout: time.Second, Script: &script, Done: done}, zap.NewNop)
	defer func() { _ = topology.Close() }()
	for i, c := range []struct {
		says map[string]report // nothing: it does not answer
		want string            // of the first slot, and of the last one
	}{
		{map[string]report{"1:1": all(3, "1:1"), "2:2": all(4, "2:2"), "3:3": all(3, "1:1")}, "2:2 2:2"},
		{map[string]report{"1:1": all(3, "1:1"), "2:2": {}, "3:3": {}}, "2:2 2:2"},
		{map[string]report{"1:1": {4, []slotRange{{5, Slots - 1, "3:3", ""}}}, "2:2": {}, "3:3": {}}, "2:2 3:3"},
		{map[string]report{"1:1": all(2, "1:1"), "2:2": {}, "3:3": all(1, "3:3")}, "1:1 1:1"},
	} {
		topology.questions = func() (questions []question, _ error) {
			for address, says := range c.says {
				questions = append(questions, question{address, func(context.Context) (report, error) {
					if says.epoch == 0 {
						return says, errors.New("no answer")
					}
					return says, nil
				}})
			}
			return questions, nil
		}
		if err := topology.survey(true); err != nil {
			t.Fatal(err)
		}
		if got := topology.owner(0).Address + " " + topology.owner(Slots-1).Address; got != c.want {
			t.Errorf("%d: %s, want %s", i+1, got, c.want)
		}
	}
}
