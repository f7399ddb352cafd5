package docs_test

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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

// recipes are the headings of the recipes, and how to check that each one works.
var recipes = map[string]tried{
	"Limit an API by key, with plans and costs": {asks: []ask{
		{path: "/geocode", want: "401*2"},
		{path: "/geocode", header: []string{"X-Api-Key", "stolen"}, want: "403*2"},
		{path: "/geocode/batch", header: []string{"X-Api-Key", "key-of-alice"}, want: "200", check: toldAsSpring("10", "300", "100", 200)},
		{path: "/geocode/batch", header: []string{"X-Api-Key", "key-of-alice"}, want: "200*2 429", check: toldToWait(1, 10)},
		{path: "/geocode/batch", header: []string{"X-Api-Key", "key-of-bob"}, want: "200*5", check: toldAsSpring("100", "3000", "100", 2500)},
		{path: "/geocode", header: []string{"X-Api-Key", "key-of-bob"}, want: "200*5"},
	}},
	"Limit what writes more than what reads": {asks: []ask{
		{method: "POST", path: "/api/item/17/comment", want: "200*5 429*10"},
		{method: "POST", path: "/api/item/18/comment", want: "429"},
		{method: "GET", path: "/api/item/17/comment", want: "200*10"},
		{method: "PUT", path: "/API/item/x/comment/", want: "429"},
		{path: "/", want: "200*35 429*2"}, // 50 in all, where the refused comments do not count
		{method: "POST", path: "/api/item/17/comment", from: "127.0.0.2", want: "200*5 429"},
	}},
	"Let bulk calls wait instead of failing": {replace: []string{"window   1m", "window   2s"}, test: func(t *testing.T, s *harness.Server, _ *harness.Backend) {
		client, began := harness.NewClient(t, "127.0.0.1"), time.Now()
		for i := range 205 {
			if a := s.Get(client, "/"); a.Status != http.StatusOK {
				t.Fatalf("call %d: status %d", i+1, a.Status)
			}
		}
		if took := time.Since(began); took < 4*time.Second {
			t.Errorf("205 calls took %v, at 100 in 2s they need 4s", took)
		}
		if a := s.Get(harness.NewClient(t, "127.0.0.2"), "/"); a.Status != http.StatusOK {
			t.Errorf("another client: status %d", a.Status)
		}
	}},
	"Limit failed logins": {asks: []ask{
		{method: "POST", path: "/login", header: []string{"X-Password", "right"}, want: "200*10", lags: true},
		{method: "POST", path: "/login", want: "401*5 429", lags: true},
		{method: "POST", path: "/login", header: []string{"X-Password", "right"}, want: "429"},
		{method: "POST", path: "/login", from: "127.0.0.2", header: []string{"X-Password", "right"}, want: "200"},
		{path: "/", want: "200*10"},
	}},
	"Limit logins by address and account": {replace: []string{"window 1m", "window 1h"}, test: tryLogins},
	"Limit tokens of a language model":    {replace: []string{"token_bucket 20000/1m", "fixed_window 20000/1000h"}, test: spendTokens, speaks: new(harness.Model).Answer},
	"Give a budget for a language model":  {test: spendBudget, speaks: new(harness.Model).Answer},
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
	"Limit each day by plan, in the user's time zone": {asks: []ask{
		{path: "/", want: "401"},
		{path: "/", header: []string{"X-Api-Key", "key-of-alice"}, want: "200*20 429"},
		{path: "/", header: []string{"X-Api-Key", "key-of-bob"}, want: "200*30"},
		{path: "/", header: []string{"X-Api-Key", "made-up"}, want: "403"},
	}},
	"Share one limit over many sites": {asks: []ask{
		{path: "/", host: "one.example.com", want: "200*6"},
		{path: "/", host: "two.example.com", want: "200*4 429"},
		{path: "/", host: "one.example.com", want: "429"},
		{path: "/", host: "two.example.com", from: "127.0.0.2", want: "200*10 429"},
	}},
	"Allow your own network more, safely": {
		replace: []string{"198.51.100.0/24", "127.0.0.64/26", "192.0.2.0/24", "127.0.0.3", "203.0.113.7", "127.0.0.4"},
		asks: []ask{
			{path: "/", from: "127.0.0.65", want: "200*30"},
			{path: "/", from: "127.0.0.2", want: "200*10 429"},
			{path: "/", from: "127.0.0.3", want: "403*2"},
			{path: "/", from: "127.0.0.4", want: "200*30"},
		},
	},
	"Limit by country and network": {replace: []string{"173.245.48.0/20", "127.0.0.9/32", "50/1h", "6/1h", "500/1h", "8/1h"}, asks: signUps},
	"Limit requests at a time, and keep room for what matters": {test: func(t *testing.T, s *harness.Server, b *harness.Backend) {
		occupy(t, s, b, 8, "/browse")
		expect(t, s, ask{path: "/browse", want: "503", check: toldToWait(1, 1)})
		occupy(t, s, b, 10, "/pay/now")
		expect(t, s, ask{path: "/pay/now", want: "503", check: toldToWait(1, 1)})
		b.Open("full")
		patient.Until(t, "room", func() bool { return s.Get(harness.NewClient(t, ""), "/browse").Status == http.StatusOK })
	}},
}

// TestRecipes runs every recipe, and what the tables below some of them have in place of a part, with either
// store. One Caddy with each store has them one after the other.
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

// toldAsSpring checks the fields of Spring Cloud Gateway, and that there are no other fields
// about limits. At least that much remains, because a busy machine gives tokens time to come
// back.
func toldAsSpring(replenish, burst, requested string, remaining int64) func(*testing.T, harness.Answer) {
	return func(t *testing.T, last harness.Answer) {
		t.Helper()
		for name, want := range map[string]string{
			"X-RateLimit-Replenish-Rate": replenish, "X-RateLimit-Burst-Capacity": burst, "X-RateLimit-Requested-Tokens": requested,
			"RateLimit": "", "RateLimit-Policy": "",
		} {
			if got := last.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		got, err := strconv.ParseInt(last.Header.Get("X-RateLimit-Remaining"), 10, 64)
		if err != nil || got < remaining {
			t.Errorf("X-RateLimit-Remaining: %d, %v, want at least %d", got, err, remaining)
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
