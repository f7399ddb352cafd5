package topology

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
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
