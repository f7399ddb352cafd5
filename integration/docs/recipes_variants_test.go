package docs_test

import (
	"net/http"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// variants are what tables below recipes say to write instead, and configs that no page has any more.
var variants = map[string]tried{
	"all requests back at the same moment": {of: "Limit each client", instead: []string{"rate 100/1m", "algorithm token_bucket 10/1m\nrefill interval"}, asks: []ask{
		{path: "/", want: "200*10 429", check: toldToWait(1, 60)},
		{path: "/", from: "127.0.0.2", want: "200*10 429"},
	}},
	"logins of WordPress": {of: "Limit failed logins", instead: []string{"match path /login*", "match {\nmethod POST\npath /wp-login*\n}", "status 401 403", "status 200"}, asks: []ask{
		{method: "POST", path: "/wp-login.php", header: []string{"X-Status", "302"}, want: "302*10", lags: true},
		{path: "/wp-login.php", want: "200*10"},
		{method: "POST", path: "/wp-login.php", want: "200*5 429", lags: true},
		{method: "POST", path: "/wp-login.php", header: []string{"X-Status", "302"}, want: "429"},
		{method: "POST", path: "/wp-login.php", from: "127.0.0.2", header: []string{"X-Status", "302"}, want: "302"},
	}},
	"wrong passwords of basic_auth": {
		of: "Limit failed logins", instead: []string{"match path /login*", "match header Authorization *", "status 401 403", "status 401"},
		replace: []string{"reverse_proxy localhost:9000", "basic_auth {\n# caddy hash-password\nalice $2a$08$cy9egAr4luR06gP4k71NWeufAowZa4epgNZgNKwDAShhfOrQwRXUm\n}\nrespond \"Hello, {http.auth.user.id}\""},
		asks: []ask{
			{path: "/", header: []string{"Authorization", "Basic YWxpY2U6aGljY3Vw"}, want: "200*7", lags: true},
			{path: "/", header: []string{"Authorization", "Basic YWxpY2U6Z3Vlc3M="}, want: "401*5 429", lags: true},
			{path: "/", header: []string{"Authorization", "Basic YWxpY2U6aGljY3Vw"}, want: "429"},
		},
	},
	"tokens a day": {of: "Limit tokens of a language model", instead: []string{"token_bucket 20000/1m", "fixed_window 100000/day"}, test: func(t *testing.T, s *harness.Server, _ *harness.Backend) {
		client := harness.NewClient(t, "")
		if status := s.Answered(client, "key-of-alice", harness.Question{Prompt: 99_000, Say: 1000, MaxTokens: 50_000}); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
		s.AwaitUsed("a large answer", "tokens", "key-of-alice", 100_000)
		if status := s.Answered(client, "key-of-alice", harness.Question{Say: 1, MaxTokens: 1}); status != http.StatusTooManyRequests {
			t.Errorf("after all of a day: status %d", status)
		}
	}, speaks: new(harness.Model).Answer},
	"tokens in a header": {
		of:      "Limit tokens of a language model",
		instead: []string{tokensFromBodies, "cost 500\ncost_header X-Tokens-Used broken_off 5000\n", "token_bucket 20000/1m", "fixed_window 100000/day"},
		replace: []string{"concurrency 3", "concurrency 1000"}, // so that RateLimit shows the tokens
		asks: []ask{
			{path: "/v1/x", want: "401"},
			{path: "/v1/x", header: []string{"X-Api-Key", "made-up"}, want: "403"},
			{path: "/v1/x", header: []string{"X-Api-Key", "key-of-alice", "X-Use", "100"}, want: "200*300", lags: true},
		},
		test: tokensFromHeaders,
	},
	// Each by the client's address or by the whole path.
	"algorithms beside each other": {
		config: `example.com {
	rate_limit /token/* {
		zone token {
			key       {client_ip}
			algorithm token_bucket 1/1m
			burst     3
		}
	}
	rate_limit /leaky/* {
		zone leaky {
			key       {client_ip}
			algorithm leaky_bucket 1/1m
			burst     3
		}
	}
	rate_limit /sliding/* {
		zone sliding {
			key       {path}
			algorithm sliding_window_log 3/1m
		}
	}
	rate_limit /concurrent/* {
		zone concurrent {
			key       {path}
			algorithm concurrency
			events    3
		}
	}
	reverse_proxy localhost:9000
}
`,
		asks: []ask{
			{path: "/token/a", want: "200*3 429"},
			{path: "/token/b", want: "429"},
			{path: "/token/b", from: "127.0.0.2", want: "200"},
			{path: "/leaky/a", want: "200*3 429"},
			{path: "/leaky/a", from: "127.0.0.2", want: "200*3 429"},
			{path: "/sliding/a", want: "200*3 429"},
			{path: "/sliding/a", from: "127.0.0.2", want: "429"},
			{path: "/sliding/b", want: "200*3 429"},
		},
		test: func(t *testing.T, s *harness.Server, b *harness.Backend) {
			occupy(t, s, b, 3, "/concurrent/a")
			expect(t, s, ask{path: "/concurrent/a", want: "429"})
			expect(t, s, ask{path: "/concurrent/b", want: "200*5", lags: true})
			b.Open("full")
			patient.Until(t, "the slots to be free", func() bool { return s.Get(harness.NewClient(t, ""), "/concurrent/a").Status == http.StatusOK })
		},
	},
}

// tokensFromBodies is what a header says in place of.
const tokensFromBodies = `			cost 200
			cost_request json max_tokens|max_completion_tokens bytes /4 {
				missing 2000
			}
			cost_response json usage.prompt_tokens usage.completion_tokens {
				broken_off counted
				unknown counted
			}
`

// tokensFromHeaders checks the costs that an upstream says in a header, after 300 requests of alice for 100 each.
func tokensFromHeaders(t *testing.T, s *harness.Server, _ *harness.Backend) {
	client := harness.NewClient(t, "")
	ask := func(user, use string) (status int, left int64) {
		a := s.Get(client, "/v1/x", "X-Api-Key", user, "X-Use", use)
		if a.Header.Get("X-Tokens-Used") != "" {
			t.Fatal("the client is told what the upstream said")
		}
		q, _, err := harness.RateLimit(a.Header)
		if err != nil {
			t.Fatal(err)
		}
		return a.Status, q.Remaining
	}
	used := int64(300 * 100)
	patient.Until(t, "what was booked and not used", func() bool {
		_, left := ask("key-of-alice", "100")
		used += 100
		return left == 100_000-(used-100)-500
	})
	for range 2 {
		if status, _ := ask("key-of-bob", "60000"); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
	}
	patient.Until(t, "what was used and not booked", func() bool {
		status, _ := ask("key-of-bob", "1")
		return status == http.StatusTooManyRequests
	})
	if status, _ := ask("key-of-alice", "1"); status != http.StatusOK {
		t.Errorf("another user: status %d", status)
	}
}
