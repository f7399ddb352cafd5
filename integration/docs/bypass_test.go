//go:build deep

package docs_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// target is a zone of an example on a server of its own, where its limit is small.
type target struct {
	example, zone string
	all           bool // all zones of the example are small
	single        bool // it is the only zone
	zones         []limitedZone
	config        object
	server        string // its name in Caddy's config
	socket        int
	address       string
	lines         map[string]*kept // connections that are still open, by the client's address
}

// kept is a connection that is used again.
type kept struct {
	net.Conn
	reader *bufio.Reader
}

// targetsOf are the targets of an example: one for all of its zones, and one for each.
func targetsOf(t *testing.T, e example, adapted object, number *int, upstream string, seen map[string]bool) (targets []*target, all object) {
	t.Helper()
	text, err := json.Marshal(adapted)
	if err != nil {
		t.Fatal(err)
	}
	var zones []string
	for _, l := range zonesIn(adapted) {
		if l.enforced() && !slices.Contains(zones, l.name) {
			zones = append(zones, l.name)
		}
	}
	focuses := zones
	if len(zones) > 1 {
		focuses = append([]string{""}, zones...)
	}
	all = make(object)
	for _, focus := range focuses {
		var config object
		if err := json.Unmarshal(text, &config); err != nil {
			t.Fatal(err)
		}
		prefix := fmt.Sprintf("t%d_", *number)
		served := prepare(config, prefix, focus, upstream)
		for _, name := range slices.Sorted(maps.Keys(served)) {
			alike := strings.ReplaceAll(textOf(served[name]), prefix, "")
			if seen[alike] {
				continue
			}
			seen[alike] = true
			tg := &target{example: e.name, zone: focus, all: focus == "" || len(zones) == 1, single: len(zones) == 1, config: config, server: name, socket: *number, lines: make(map[string]*kept)}
			*number++
			for _, l := range zonesIn(config) {
				bare := strings.TrimPrefix(l.name, prefix)
				if l.server == name && l.enforced() && (focus == "" || bare == focus) {
					l.name = bare
					tg.zones = append(tg.zones, l)
				}
			}
			targets = append(targets, tg)
			all[fmt.Sprint(prefix, name)] = served[name]
			served[name].(object)["listen"] = []any{fmt.Sprintf("fd/%d", 3+tg.socket)}
		}
	}
	return targets, all
}

// startExamples runs a Caddy with all examples.
//
// Of targets that differ in nothing but their names, only the first is there.
func startExamples(t *testing.T, all []example, b *harness.Backend) (targets []*target) {
	t.Helper()
	const sockets = 300
	s := harness.StartSites(t, harness.Binary(t), sockets, harness.Caddyfile("log {\nlevel WARN\n}", "respond ok"),
		"LIMITS_PASSWORD_HASH=$2a$04$MhSbH1Jjm8rp5Ti2IIPMLeECXCg/XqwZleMXA4NAfJoYpnP/tz.FS")
	served, number, seen := make(object), 0, make(map[string]bool)
	for _, e := range all {
		adapted := e.adapt(t, s)
		found, servers := targetsOf(t, e, adapted, &number, b.Address, seen)
		targets = append(targets, found...)
		maps.Copy(served, servers)
	}
	config := object{
		"admin":   object{"listen": "unix/{env.ADMIN}", "config": object{"persist": false}},
		"logging": object{"logs": object{"default": object{"level": "WARN"}}},
		"apps":    object{"http": object{"servers": served, "grace_period": "1s"}},
	}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if number > sockets {
		t.Fatalf("%d zones, but only %d sockets", number, sockets)
	}
	if err := s.Configure("POST", "/load", "application/json", string(text)); err != nil {
		t.Fatal(err)
	}
	addresses := append([]string{s.Address}, s.More...)
	for _, tg := range targets {
		tg.address = addresses[tg.socket]
	}
	return targets
}

// gap is a bypass that got through.
type gap struct{ example, zone, bypass, how string }

// Bypasses that are no single requests.
const leavingEarly, sameNetwork = "leaving early", "an address of the same network"

// attack tries all bypasses against a target, or the one of that name.
func (tg *target) attack(t *testing.T, b *harness.Backend, only string) (gaps []gap) {
	t.Helper()
	defer tg.hangUp()
	found := func(zone, name, how string) {
		if !slices.ContainsFunc(gaps, func(f gap) bool { return f.zone == zone && f.bypass == name }) {
			gaps = append(gaps, gap{tg.example, zone, name, how})
		}
	}
	invented := tg.socket * 250
	for _, l := range tg.zones {
		if l.zone["algorithm"] == "concurrency" && tg.zone == "" && len(tg.zones) > 1 {
			continue // one of the others refuses first
		}
		v := &victim{limitedZone: l, text: textOf(l.zone), invented: &invented, wildcard: tg.anyHost(l)}
		for _, q := range tg.plains(l) {
			clients := []string{q.client}
			if q.client == "" {
				clients = append(clients, "203.0.113.50", "2001:db8:5::1")
			}
			for i, client := range clients {
				q := q
				q.client = client
				end := tg.useUp(t, b, l, q, i > 0, func(how string) { found(l.name, leavingEarly, how) })
				for _, w := range bypasses {
					if only != "" && w.name != only || w.invents && !tg.all || !w.invents && !tg.single && tg.all || client != "" && i > 0 && !w.proxied {
						continue
					}
					tries := w.tries(v, q)
					for i, attempt := range tries {
						r := attempt.proxied(tg.fieldOfProxy()).send(t, tg)
						if r.reached && (!w.invents || i == len(tries)-1) {
							found(l.name, w.name, fmt.Sprintf("status %d for %q", r.status, attempt.bytes()))
							break
						}
					}
				}
				for _, neighbour := range neighbours[client] {
					other := q
					other.client = neighbour
					if r := other.proxied(tg.fieldOfProxy()).send(t, tg); r.reached && tg.all {
						found(l.name, sameNetwork, neighbour)
					}
				}
				end()
			}
		}
	}
	return gaps
}

func (tg *target) hangUp() {
	for from, line := range tg.lines {
		line.Close()
		delete(tg.lines, from)
	}
}

// neighbours are other addresses of a client.
var neighbours = map[string][]string{
	"203.0.113.50":  {"::ffff:203.0.113.50", "::FFFF:203.0.113.50", "203.0.113.50:4711"},
	"2001:db8:5::1": {"2001:db8:5::2", "2001:db8:5:0:ffff:ffff:ffff:ffff", "2001:DB8:5:0::1", "[2001:db8:5::3]:80"},
}

// fieldOfProxy is the field with the client's address that only the proxy sends.
func (tg *target) fieldOfProxy() string {
	server := servers(tg.config)[tg.server].(object)
	if fields, _ := server["client_ip_headers"].([]any); len(fields) > 0 {
		return fields[0].(string)
	}
	return ""
}

// anyHost reports whether the site of a zone takes hosts that a client makes up.
func (tg *target) anyHost(l limitedZone) bool {
	for _, set := range l.around {
		if hosts, ok := set["host"].([]any); ok {
			return slices.ContainsFunc(hosts, func(h any) bool { return strings.HasPrefix(h.(string), "*") })
		}
	}
	return true
}

// plains are the requests that the zone limits, one for each of its matcher sets.
func (tg *target) plains(l limitedZone) (all []try) {
	if own, ok := requests[tg.example+"/"+l.name]; ok {
		for _, change := range own {
			all = append(all, change(plain(l, nil, tg.config)))
		}
		return all
	}
	sets, _ := l.zone["match"].([]any)
	if len(sets) == 0 {
		return []try{plain(l, nil, tg.config)}
	}
	for _, set := range sets {
		all = append(all, plain(l, set.(object), tg.config))
	}
	return all
}

// useUp uses up the limit for a request. What it returns ends the requests that are kept inside.
func (tg *target) useUp(t *testing.T, b *harness.Backend, l limitedZone, q try, maybeBefore bool, found func(string)) (end func()) {
	t.Helper()
	sent := q.proxied(tg.fieldOfProxy())
	if l.zone["algorithm"] == "concurrency" {
		return tg.occupy(t, b, sent, small)
	}
	if l.zone["charge_on_response"] != nil || l.zone["cost_header"] != nil || l.zone["cost_response"] != nil {
		n := tg.leave(t, b, sent)
		if n > small {
			found(fmt.Sprintf("%d of %d requests reached the upstream", n, small))
		}
		maybeBefore = maybeBefore || n > 0
	}
	for i := range small + 3 {
		if r := sent.send(t, tg); !r.reached {
			if i == 0 && !maybeBefore && !tg.all {
				t.Errorf("%s, zone %s: the first request is refused with %d: %q", tg.example, l.name, r.status, sent.bytes())
			}
			if r.status == 404 {
				t.Errorf("%s, zone %s: not found: %q", tg.example, l.name, sent.bytes())
			}
			return func() {}
		}
	}
	t.Errorf("%s, zone %s: never refused: %q", tg.example, l.name, sent.bytes())
	return func() {}
}

// leave sends requests and leaves before their responses. It returns how many reached the upstream.
func (tg *target) leave(t *testing.T, b *harness.Backend, q try) (reached int) {
	t.Helper()
	for ; reached <= small; reached++ {
		before := len(b.Came())
		conn := q.with("X-Gate: nobody opens it").open(t, tg.address)
		refused := make(chan struct{})
		go func() {
			defer close(refused)
			_, _ = conn.Read(make([]byte, 1))
		}()
		inside := tg.inside(t, b, refused, func() bool { return len(b.Came()) > before })
		conn.Close()
		<-refused
		if !inside {
			break
		}
		b.AwaitInside(t, 0)
	}
	return reached
}

// inside waits until a request is inside or refused.
func (tg *target) inside(t *testing.T, b *harness.Backend, refused chan struct{}, inside func() bool) (yes bool) {
	t.Helper()
	patient.Until(t, "a request to be inside or refused", func() bool {
		select {
		case <-refused:
			return true
		default:
			yes = inside()
			return yes
		}
	})
	return yes
}

// occupy takes all slots. Those of requests before may come back a moment later.
func (tg *target) occupy(t *testing.T, b *harness.Backend, q try, slots int) (end func()) {
	t.Helper()
	q = q.with("X-Gate: nobody opens it")
	inside, _ := b.Now()
	var ends []func()
	patient.Until(t, tg.example+": all slots to be taken", func() bool {
		conn := q.open(t, tg.address)
		refused, over := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			if r, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && r.StatusCode != http.StatusSwitchingProtocols {
				close(refused)
			}
			_, _ = io.Copy(io.Discard, conn)
		}()
		hangUp := func() { conn.Close(); <-over }
		if !tg.inside(t, b, refused, func() bool { now, _ := b.Now(); return now > inside }) {
			hangUp()
			return len(ends) == slots
		}
		inside++
		if ends = append(ends, hangUp); len(ends) > slots {
			t.Errorf("%s, zone %s: %d requests at once: %q", tg.example, tg.zone, len(ends), q.bytes())
		}
		return len(ends) > slots
	})
	return func() {
		for _, end := range ends {
			end()
		}
		b.AwaitInside(t, 0)
	}
}

// TestBypasses: no way around a limit that a client could try gets past an example of the docs. The
// examples and their zones are found by walking the docs, so a new one is tried, too. Bad examples,
// with a hole each, show that the tries are right.
func TestBypasses(t *testing.T) {
	t.Parallel()
	b := harness.StartBackend(t, verifying(protected))
	all := examples(t)
	var fields strings.Builder
	for _, field := range badFields {
		fmt.Fprintf(&fields, "%s {header.%s}\n", field, field)
	}
	for _, bad := range badExamples {
		limit := "rate 5/1m\n"
		if strings.Contains(bad.zone, "events") {
			limit = "window 1m\n"
		}
		all = append(all, example{
			name:   badName + bad.bypass,
			config: ":80 {\nvars {\nhost {host}\nhostport {hostport}\npath {path}\nuri {http.request.orig_uri}\n" + fields.String() + "}\nrate_limit {\nzone bad {\n" + limit + bad.zone + "\n}\n}\nreverse_proxy localhost:9000\n}\n",
		})
	}
	targets := startExamples(t, all, b)
	used, found := make(map[string]bool), make(map[string]bool)
	for _, tg := range targets {
		name, bad := strings.CutPrefix(tg.example, badName)
		if bad {
			patient.Until(t, name+" to be found", func() bool {
				gaps := tg.attack(t, b, name)
				found[name] = slices.ContainsFunc(gaps, func(g gap) bool { return g.bypass == name })
				return found[name] || name != leavingEarly // a charge is given back a moment later
			})
			continue
		}
		for _, g := range tg.attack(t, b, "") {
			at := g.example + "/" + g.zone + ": " + g.bypass
			if _, known := accepted[at]; known {
				used[at] = true
				continue
			}
			t.Errorf("%s gets through: %s", at, g.how)
		}
	}
	for at := range accepted {
		if !used[at] {
			t.Errorf("%s is accepted, but does not happen", at)
		}
	}
	for _, w := range bypasses {
		if !found[w.name] && w.never == "" {
			t.Errorf("%s: not found in a bad example", w.name)
		}
	}
	for _, name := range []string{leavingEarly, sameNetwork} {
		if !found[name] {
			t.Errorf("%s: not found in a bad example", name)
		}
	}
	t.Logf("%d bypasses, %d zones of %d examples", len(bypasses)+2, len(targets), len(all))
}
