//go:build deep

package docs_test

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// trouble is a Caddy with the config that is prepared for an attack, and its Redis.
type trouble struct {
	*harness.Server
	t      *testing.T
	client *http.Client
	redis  *redistest.Server
	config string
}

const (
	writesRunbook = "caddy reload" // the one command of the runbooks that takes what the operator has written
	complaining   = "203.0.113.7"
)

// step is what belongs to a command of a runbook.
type step struct {
	before func(*trouble)
	prints string             // a pattern of what the command prints in the end
	after  func(*trouble) any // nil, or what is wrong
}

// runbooks are the troubles, and the steps in the order of the page.
var runbooks = []struct {
	title string
	begin func(*trouble)
	steps []step
}{
	{"Users get 429", func(e *trouble) { e.exceed(complaining) }, []step{
		{prints: `clients +limited[\s\S]*Zone clients is refusing this key[\s\S]*\n  \S+ rate-limit reset clients 203\.0\.113\.7\nTo double its limit: \S+ rate-limit set clients 203\.0\.113\.7 200\n$`},
		{prints: `clients .*203\.0\.113\.7`},
		{after: func(e *trouble) any { return e.differs(complaining, http.StatusOK) }},
		{prints: `500`, after: func(e *trouble) any { return e.differs(complaining, http.StatusOK) }},
		{before: func(e *trouble) { e.exceed("203.0.113.8") }, prints: `203\.0\.113\.8`},
		{before: func(e *trouble) { e.write("clients {", "clients {\nenforce 0") }, after: func(e *trouble) any { return e.differs("203.0.113.8", http.StatusOK) }},
	}},
	{"An attack is under way", func(e *trouble) {
		e.exceed(complaining)
		e.exceed("203.0.113.8")
		e.spread()
	}, []step{
		{prints: `nets .*198\.51\.100\.0/24`},
		{prints: `clients .*203\.0\.113\.0/24`},
		{prints: `clients [\s\S]*nets `},
		{prints: `203\.0\.113\.8`},
		{after: func(e *trouble) any { return e.differs(complaining, http.StatusTooManyRequests) }},
		{after: func(e *trouble) any { return e.differs("203.0.113.99", http.StatusTooManyRequests) }},
		{prints: `clients .*203\.0\.113\.7[\s\S]*clients .*203\.0\.113\.0/24`},
		{prints: `clients +[\d.]+/s +\d+ +[1-9]`}, // how many requests are refused
		{before: func(e *trouble) {
			e.write("rate_limit {\n\t\tzone clients {", "@bad header User-Agent bad*\nrate_limit {\nzone clients {\nblock 198.51.100.0/24\nblock @bad")
		}, after: func(e *trouble) any { return e.differs("198.51.100.9", http.StatusForbidden) }},
		{prints: `203\.0\.113\.7`},
		{after: func(e *trouble) any { return e.differs("203.0.113.99", http.StatusOK) }},
		{},
		{after: func(e *trouble) any { return e.differs(complaining, http.StatusOK) }},
	}},
	{"Redis is slow", func(e *trouble) {
		proxy := faultproxy.Start(e.t, e.redis.Addr())
		e.config = strings.Replace(e.config, e.redis.Addr(), proxy.Addr(), 1)
		e.write("timeout 5s", "timeout 200ms")
		e.must(writesRunbook)
		proxy.Delay(100 * time.Millisecond)
	}, []step{
		{prints: `round_trip: [\s\S]*more than a third[\s\S]* waits: [^\n]*\n +\d+ requests`},
		{
			before: func(e *trouble) {
				e.write("timeout 5s\n\t\t}\n\t\ton_store_error allow", "timeout 20ms\n\t\t}\n\t\ton_store_error local")
			},
			after: func(e *trouble) any { e.exceed(complaining); return nil }, // in its own memory
		},
		{prints: `^\d+ \d+ [\d.]+ \d+\n$`}, // the third is the average
		{before: func(e *trouble) { e.slowScript() }, prints: `(?i)eval`},
		{prints: `cmdstat_evalsha`},
		{before: func(e *trouble) {
			e.write("timeout 5s", "timeout 10s")
			e.must(writesRunbook)
		}, prints: `^0 fail and `},
	}},
	{"Redis is gone", func(e *trouble) {
		e.must("caddy rate-limit set clients 203.0.113.7 500/1m")
		e.must("caddy rate-limit ban clients 203.0.113.9/32")
		e.must("caddy rate-limit ban clients 198.51.100.0/31")
		e.exceed("198.51.100.1")
		e.redis.Kill()
	}, []step{
		{prints: `connection refused`},
		{prints: `on_store_error`, after: func(e *trouble) any { // the ban of a network holds, and that of an address does not
			return cmp.Or(e.differs("198.51.100.1", http.StatusTooManyRequests), e.differs("203.0.113.9", http.StatusOK))
		}},
		{
			before: func(e *trouble) { e.write("on_store_error allow", "on_store_error deny") },
			after:  func(e *trouble) any { return e.differs(complaining, http.StatusServiceUnavailable) },
		},
		{before: func(e *trouble) { e.redis.Restart() }, prints: `PONG`},
		{prints: `redis`, after: func(e *trouble) any { return e.differs(complaining, http.StatusOK) }},
		{prints: `^There are no overrides\.\n`},
		{prints: `^There are no bans\.\n`},
	}},
}

// TestRunbooksInTrouble: each runbook fits on a screen, and each of its commands does in its trouble what the page says.
func TestRunbooksInTrouble(t *testing.T) {
	page := harness.ReadPage(t, "../../docs/operating.md")
	command := regexp.MustCompile("(?m)^(?:caddy|redis-cli) .*$|`((?:caddy|redis-cli) [^`]*)`")
	for _, r := range runbooks {
		t.Run(r.title, func(t *testing.T) {
			t.Parallel()
			_, text, _ := strings.Cut(page, "\n## "+r.title+"\n")
			text, _, _ = strings.Cut(text, "\n## ")
			if lines := strings.Count(text, "\n"); lines < 20 || lines > 45 {
				t.Errorf("it has %d lines: not a screen", lines)
			}
			commands := command.FindAllStringSubmatch(text, -1)
			e := startTrouble(t)
			r.begin(e)
			for i, match := range commands {
				line := match[0]
				if match[1] != "" {
					line = match[1]
				}
				if i >= len(r.steps) {
					t.Fatalf("no step for %s", line)
				}
				e.take(line, r.steps[i])
			}
			if len(commands) != len(r.steps) {
				t.Errorf("%d commands, %d steps", len(commands), len(r.steps))
			}
		})
	}
}

func startTrouble(t *testing.T) *trouble {
	t.Helper()
	_, config, _ := strings.Cut(harness.ReadPage(t, "../../docs/rollout.md"), "### Prepared for an attack\n")
	_, config, _ = strings.Cut(config, "```caddyfile\n")
	config, _, found := strings.Cut(config, "```")
	if !found {
		t.Fatal("rollout.md has no config to copy")
	}
	e := &trouble{t: t, client: harness.NewClient(t, ""), redis: redistest.Start(t)}
	b := harness.StartBackend(t, harness.AnswerAsAsked)
	config = strings.Replace(config, "http://example.com {", ":80 {\nbind fd/3", 1)
	config = strings.ReplaceAll(config, "localhost:9000", b.Address)
	config = strings.ReplaceAll(config, "00/1m", "00/1h") // so that what is used up stays so, however slow the machine is
	// The test is the proxy in front of this Caddy.
	e.config = `{
	admin unix/{$ADMIN}
	persist_config off
	auto_https off
	servers {
		trusted_proxies static 127.0.0.0/8
	}
	rate_limit {
		store redis {
			address ` + e.redis.Addr() + `
			timeout 5s
		}
		on_store_error allow
	}
}
` + config
	e.Server = harness.StartCaddy(t, e.config)
	patient.Until(t, "Redis to decide", func() bool { return e.ask("192.0.2.1").Header.Get("RateLimit") != "" })
	return e
}

// take runs a command of a runbook until it prints what it should, and has the effect.
func (e *trouble) take(line string, s step) {
	e.t.Helper()
	if s.before != nil {
		s.before(e)
	}
	if strings.HasPrefix(line, writesRunbook) {
		e.must(writesRunbook)
	}
	prints := regexp.MustCompile(s.prints)
	var output string
	defer func() {
		if e.t.Failed() {
			e.t.Logf("%s printed:\n%s", line, output)
		}
	}()
	patient.Until(e.t, line, func() bool {
		var err error
		if output, err = e.run(line); err != nil && !strings.Contains(line, "doctor") {
			output += err.Error()
			return false
		}
		return prints.MatchString(output)
	})
	if s.after == nil {
		return
	}
	if wrong := s.after(e); wrong != nil {
		e.t.Errorf("after %s: %v", line, wrong)
	}
}

// run runs a command as it is on the page. Meanwhile a client goes on that has used its limit up.
func (e *trouble) run(line string) (string, error) {
	e.t.Helper()
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-ended:
				return
			default:
				got, err := harness.Send(e.client, e.URL("/"), "X-Forwarded-For", "203.0.113.8")
				if err == nil && got.Status == http.StatusOK { // or a slow machine would see it use up the limit of its network, too
					<-time.After(50 * time.Millisecond)
				}
			}
		}
	}()
	defer close(ended)
	port := e.redis.Addr()[strings.LastIndexByte(e.redis.Addr(), ':')+1:]
	line = strings.NewReplacer("/etc/caddy/Caddyfile", "Caddyfile").Replace(line)
	return e.Shell(`
		caddy() { timeout 60 "$CADDY" "$@"; }
		redis-cli() { command redis-cli -p ` + port + ` "$@"; }
		` + line)
}

func (e *trouble) must(line string) {
	e.t.Helper()
	if output, err := e.run(line); err != nil {
		e.t.Fatalf("%s: %v\n%s", line, err, output)
	}
}

// write changes the config on the disk.
func (e *trouble) write(before, after string) {
	e.t.Helper()
	if !strings.Contains(e.config, before) {
		e.t.Fatalf("no %q in the config", before)
	}
	if err := os.WriteFile(filepath.Join(e.Dir, "Caddyfile"), []byte(strings.Replace(e.config, before, after, 1)), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

// ask sends a request of a client.
func (e *trouble) ask(from string) harness.Answer {
	e.t.Helper()
	return e.Get(e.client, "/", "X-Forwarded-For", from)
}

// exceed uses the limit of a client up.
func (e *trouble) exceed(from string) {
	e.t.Helper()
	patient.Until(e.t, "429", func() bool { return e.ask(from).Status == http.StatusTooManyRequests })
}

// spread sends requests of many clients of one network, each below its limit.
func (e *trouble) spread() {
	e.t.Helper()
	for i := range 50 {
		if wrong := e.differs(fmt.Sprintf("198.51.100.%d", i), http.StatusOK); wrong != nil {
			e.t.Error(wrong)
		}
	}
}

// differs returns nil once a client gets a status.
func (e *trouble) differs(from string, want int) any {
	e.t.Helper()
	if got := e.ask(from).Status; got != want {
		return fmt.Sprintf("%s gets %d, want %d", from, got, want)
	}
	return nil
}

// slowScript has Redis do something that takes long.
func (e *trouble) slowScript() {
	e.t.Helper()
	e.redis.Configure("slowlog-log-slower-than", "1000")
	if err := e.redis.Admin().Eval(e.t.Context(), "for i = 1, 3e6 do end return 1", nil).Err(); err != nil {
		e.t.Fatal(err)
	}
}
