package docs_test

import (
	"cmp"
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

// ask is a request that is sent a number of times in a row, and the statuses of the answers: "200
// 200 429", or "200*5 429" for five and one.
type ask struct {
	method, host, path string
	from               string // the client's address, 127.0.0.1 if empty
	header             []string
	want               string
	body               string
	lags               bool // what goes back, a refund or a slot, may take a moment to arrive
	check              func(t *testing.T, last harness.Answer)
}

// tried says how to check that a recipe works.
type tried struct {
	replace []string // pairs of texts in the config, for a test that cannot wait
	asks    []ask
	test    func(t *testing.T, s *harness.Server, b *harness.Backend)
	speaks  func(b *harness.Backend, w http.ResponseWriter, r *http.Request) // upstream if nil

	of      string   // the heading, where it is not the name
	instead []string // pairs of texts in the config, as the table below it says
	config  string   // where no page has it
}

// recipes are the headings of recipes whose cases in examples/recipes leave something out, because it depends on an
// upstream: streams of tokens, and connections that are closed.
var recipes = map[string]tried{
	"Limit tokens of a language model":   {replace: []string{"token_bucket 20000/1m", "fixed_window 20000/1000h"}, test: spendTokens, speaks: new(harness.Model).Answer},
	"Give a budget for a language model": {test: spendBudget, speaks: new(harness.Model).Answer},
	"Limit WebSockets": {test: func(t *testing.T, s *harness.Server, _ *harness.Backend) {
		var open []net.Conn
		for i, fields := range []string{
			"Connection: Upgrade\r\nUpgrade: websocket", "Connection: keep-alive, upgrade\r\nUpgrade: WebSocket", "connection: UPGRADE\r\nupgrade: WEBSOCKET",
			"Connection: upgrade, x\r\nUpgrade: webSocket", "CONNECTION: Upgrade\r\nUPGRADE: WebSocket", "Connection: Upgrade\r\nUpgrade: Websocket",
		} {
			conn, status := s.UpgradeWith(t, fields)
			if want := map[bool]int{true: 101, false: 429}[i < 5]; status != want {
				t.Fatalf("connection %d: status %d, want %d", i+1, status, want)
			}
			open = append(open, conn)
		}
		expect(t, s, ask{path: "/", want: "200*10"})
		open[0].Close()
		patient.Until(t, "the place of a connection that was closed", func() bool {
			conn, status := s.Upgrade(t)
			if status != 101 {
				conn.Close()
			}
			return status == 101
		})
	}},
}

// TestRecipes runs these recipes, and what the tables below others have in place of a part, with either store. One Caddy
// with each store has them one after the other.
func TestRecipes(t *testing.T) {
	t.Parallel()
	all := maps.Clone(recipes)
	maps.Copy(all, variants)
	names := slices.Sorted(maps.Keys(all))
	pages, _ := harness.Recipes(t)
	harness.EachStore(t, func(t *testing.T, store string) {
		none := harness.Caddyfile("", "respond none")
		s := harness.StartSites(t, harness.Binary(t), 1+len(names), none)
		for i, name := range names {
			t.Run(name, func(t *testing.T) {
				r, speaks := all[name], harness.AnswerAsAsked
				if r.speaks != nil {
					speaks = r.speaks
				}
				b := harness.StartBackend(t, speaks)
				config := r.written(t, name, pages)
				// Each has a socket and keys of its own, and no zones of the recipe before.
				s := during(t, s, s.More[i])
				s.MustLoad(none)
				store := strings.Replace(store, "address", fmt.Sprintf("key_prefix recipe%d\naddress", i), 1)
				s.MustLoad(strings.ReplaceAll(harness.Localize(config, store, b.Address), "fd/3", fmt.Sprintf("fd/%d", 4+i)))
				for _, a := range r.asks {
					expect(t, s, a)
				}
				if r.test != nil {
					r.test(t, s, b)
				}
			})
		}
	})
}

// written returns the config of a recipe, with what it says instead, and what the test has to replace.
func (r tried) written(t *testing.T, name string, pages []harness.Recipe) string {
	t.Helper()
	heading, config := cmp.Or(r.of, name), r.config
	if at := slices.IndexFunc(pages, func(w harness.Recipe) bool { return w.Heading == heading }); at >= 0 {
		config = pages[at].Config
		for i := 1; i < len(r.instead); i += 2 {
			for line := range strings.Lines(r.instead[i]) {
				if line = strings.TrimSpace(line); line != "" && !strings.Contains(pages[at].After, "`"+line+"`") {
					t.Fatalf("the recipe does not say %q", line)
				}
			}
		}
	} else if config == "" {
		t.Fatalf("no page has a recipe %q", heading)
	}
	pairs := slices.Concat(r.instead, r.replace)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(config, pairs[i]) {
			t.Fatalf("the recipe does not say %q", pairs[i])
		}
		config = strings.ReplaceAll(config, pairs[i], pairs[i+1])
	}
	return config
}

// expect sends requests and compares the statuses.
func expect(t *testing.T, s *harness.Server, a ask) {
	t.Helper()
	var want []int
	for word := range strings.FieldsSeq(a.want) {
		status, times := 0, 1
		if _, err := fmt.Sscanf(word, "%d*%d", &status, &times); err != nil && status == 0 {
			t.Fatalf("%q: %v", a.want, err)
		}
		for range times {
			want = append(want, status)
		}
	}
	from := a.from
	if from == "" {
		from = "127.0.0.1"
	}
	client := harness.NewClient(t, from)
	var last harness.Answer
	for i, status := range want {
		last = do(s, client, a)
		if a.lags && status != http.StatusTooManyRequests && last.Status == http.StatusTooManyRequests {
			patient.Until(t, "a charge or a slot to be given back", func() bool {
				last = do(s, client, a)
				return last.Status != http.StatusTooManyRequests
			})
		}
		if last.Status != status {
			t.Errorf("%s %s %v from %s: answer %d is %d, want %s", a.method, a.path, a.header, from, i+1, last.Status, a.want)
			return
		}
	}
	if a.check != nil {
		a.check(t, last)
	}
}

func do(s *harness.Server, client *http.Client, a ask) harness.Answer {
	s.T.Helper()
	if a.method == "" {
		a.method = http.MethodGet
	}
	r, err := http.NewRequest(a.method, s.URL(a.path), strings.NewReader(a.body))
	if err != nil {
		s.T.Fatal(err)
	}
	r.Host = a.host
	for i := 0; i < len(a.header); i += 2 {
		r.Header.Set(a.header[i], a.header[i+1])
	}
	response, err := client.Do(r)
	if err != nil {
		s.T.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.T.Fatal(err)
	}
	return harness.Answer{Status: response.StatusCode, Header: response.Header, Body: string(body)}
}

// toldToWait checks that the wait of a refusal lies between two numbers of seconds.
func toldToWait(least, most int) func(*testing.T, harness.Answer) {
	return func(t *testing.T, last harness.Answer) {
		t.Helper()
		var seconds int
		if _, err := fmt.Sscan(last.Header.Get("Retry-After"), &seconds); err != nil || seconds < least || seconds > most {
			t.Errorf("Retry-After: %q, want from %d to %d", last.Header.Get("Retry-After"), least, most)
		}
	}
}

// occupy sends requests that stay with the upstream until there are that many.
func occupy(t *testing.T, s *harness.Server, b *harness.Backend, until int, path string) {
	t.Helper()
	inside, _ := b.Now()
	client := harness.NewClient(t, "")
	for range until - inside {
		go func() { _, _ = harness.Send(client, s.URL(path), "X-Gate", "full") }()
	}
	b.AwaitInside(t, until)
}

// during returns the same server for a part of its test, with another of its sites.
func during(t *testing.T, s *harness.Server, address string) *harness.Server {
	part := *s
	part.T, part.Address = t, address
	return &part
}
