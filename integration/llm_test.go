package integration_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// question is what a client asks of the stand-in for a language model. The model answers with as many
// tokens as Say.
type question struct {
	MaxTokens int64          `json:"max_tokens,omitempty"`
	Stream    bool           `json:"stream"`
	Options   map[string]any `json:"stream_options,omitempty"`

	Prompt int64  `json:"prompt"`
	Cached int64  `json:"cached"`
	Say    int64  `json:"say"`
	Gate   string `json:"gate,omitempty"` // the answer waits in the middle until it opens
	Fail   int    `json:"fail,omitempty"` // the status of an error
}

// withUsage asks for the usage in a stream, as clients of OpenAI do.
var withUsage = map[string]any{"include_usage": true}

// model is a server of language models that speaks as OpenAI's does. The sum is of all tokens that
// it has said it used.
type model struct {
	*backend
	used atomic.Int64
}

func startModel(t *testing.T) *model {
	m := new(model)
	m.backend = startBackend(t, m.answer)
	return m
}

func (m *model) answer(b *backend, w http.ResponseWriter, r *http.Request) {
	var q question
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if q.Fail != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(q.Fail)
		_, _ = io.WriteString(w, `{"error":{"message":"the model is overloaded","type":"server_error"}}`)
		return
	}
	usage := fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}`,
		q.Prompt, q.Say, q.Prompt+q.Say, q.Cached)
	m.used.Add(q.Prompt + q.Say)
	if !q.Stream {
		w.Header().Set("Content-Type", "application/json")
		var to io.Writer = w
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			to = z
		}
		fmt.Fprintf(to, `{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"\"usage\":{\"total_tokens\":0}"}}],%s}`, usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(format string, args ...any) {
		fmt.Fprintf(w, "data: "+format+"\n\n", args...)
		_ = http.NewResponseController(w).Flush()
	}
	events := min(q.Say, 8)
	for i := range events {
		say(`{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"{\"usage\":{\"total_tokens\":%d}}"}}],"usage":null}`, i)
		if i == events/2 && q.Gate != "" {
			select {
			case <-b.gate(q.Gate):
			case <-r.Context().Done():
				return
			}
		}
	}
	if q.Options["include_usage"] == true {
		say(`{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[],%s}`, usage)
	}
	say("[DONE]")
}

// question sends a question, and returns the answer when its header is there.
func (s *server) question(client *http.Client, key string, q question) *http.Response {
	s.t.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url("/v1/chat/completions"), strings.NewReader(string(body)))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Host = "llm.example.com"
	if key != "" {
		r.Header.Set("X-Api-Key", key)
	}
	r.Header.Set("Content-Type", "application/json")
	if rand.IntN(2) == 0 {
		r.Header.Set("Accept-Encoding", "gzip, br")
	}
	response, err := client.Do(r)
	if err != nil {
		s.t.Error(err)
		return &http.Response{Body: http.NoBody}
	}
	return response
}

// answered sends a question and reads the answer.
func (s *server) answered(client *http.Client, key string, q question) (status int) {
	s.t.Helper()
	response := s.question(client, key, q)
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		s.t.Error(err)
	}
	return response.StatusCode
}

// spent is what a key has used of a zone.
type spent struct{ Used, Quota, Owed int64 }

func (s *server) spent(zone, key string) (k spent) {
	s.t.Helper()
	text, err := s.admin(http.MethodGet, "/rate_limit/zones/"+zone+"/key?key="+key, "", "")
	if err == nil {
		err = json.Unmarshal([]byte(text), &k)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return k
}

// awaitUsed waits until a key has used so much of a zone.
func (s *server) awaitUsed(what, zone, key string, want int64) {
	s.t.Helper()
	patient.UntilEqual(s.t, what, func() int64 { return s.spent(zone, key).Used }, want)
}

// rush is a key with a small budget in tokenSite.
const rush, smallBudget = "rush", 20 * 500

// tokenSite has a large budget of tokens, and a small one for the key rush. A request books 500.
func tokenSite(store string) string {
	zone := func(name, match string, events int) string {
		return `
			zone ` + name + ` {
				match         ` + match + `
				key           {header.X-Api-Key}
				algorithm     fixed_window
				events        ` + strconv.Itoa(events) + `
				window        year
				cost          500
				cost_response json usage.prompt_tokens usage.completion_tokens
			}`
	}
	return caddyfile("", `
		log
		rate_limit {`+zone("tokens", "not header X-Api-Key "+rush, 100_000_000)+zone("small", "header X-Api-Key "+rush, smallBudget)+`
			`+store+`
		}
		reverse_proxy /closed 127.0.0.1:1
		reverse_proxy {$UPSTREAM} {
			flush_interval -1
		}`)
}

// TestTokensAreExact: 100 clients that stream at once are charged what the model says, to the token.
// However many come at once, no more begin than the bookings allow. What they owe then shows.
func TestTokensAreExact(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		const clients = 100
		m := startModel(t)
		s := startCaddy(t, tokenSite(store), m.variable())
		client := newClient(t, "")
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				for range 2 {
					q := question{Stream: rand.IntN(3) > 0, Options: withUsage, Prompt: rand.Int64N(2000), Say: 1 + rand.Int64N(2000)}
					if status := s.answered(client, "crowd", q); status != http.StatusOK {
						t.Errorf("status %d", status)
					}
				}
			})
		}
		all.Wait()
		s.awaitUsed("what the model has said", "tokens", "crowd", m.used.Load())

		// Of 100 that come at once, 20 begin. Each of them costs more than it has booked.
		var passed, refused atomic.Int64
		for range clients {
			all.Go(func() {
				switch status := s.answered(client, rush, question{Stream: true, Options: withUsage, Prompt: 600, Say: 100, Gate: "rush"}); status {
				case http.StatusOK:
					passed.Add(1)
				case http.StatusTooManyRequests:
					refused.Add(1)
				default:
					t.Errorf("status %d", status)
				}
			})
		}
		patient.UntilEqual(t, "refusals", refused.Load, clients-20)
		m.awaitInside(t, 20)
		m.open("rush")
		all.Wait()
		if passed.Load() != 20 {
			t.Errorf("%d passed, want 20", passed.Load())
		}
		s.awaitUsed("what the rush has cost", "small", rush, 20*700)
		if k := s.spent("small", rush); k.Owed != 20*700-smallBudget {
			t.Errorf("%+v, want a debt of %d", k, 20*700-smallBudget)
		}
		out, err := exec.Command(commandBinary(t), "rate-limit", "get", "small", rush, "--address", "unix/"+s.dir+"/admin").CombinedOutput()
		if want := fmt.Sprintf("%d of %d (%d owed)", 20*700, smallBudget, 20*700-smallBudget); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("get does not say %q: %v\n%s", want, err, out)
		}
		patient.Until(t, "the cost in the access log", func() bool {
			return strings.Contains(string(s.log()), `"rate_limit_costs":[{"zone":"small","result":"read","booked":500,"cost":700}]`)
		})
		if status := s.answered(client, rush, question{Say: 1}); status != http.StatusTooManyRequests {
			t.Errorf("a key with a debt: status %d", status)
		}

		// The access log is written before Caddy's own answer is over.
		if a := s.get(client, "/closed", "X-Api-Key", "unlucky"); a.status != http.StatusBadGateway {
			t.Errorf("without an upstream: status %d", a.status)
		}
		s.awaitUsed("the booking of a request that has failed", "tokens", "unlucky", 500)
		s.awaitLog(`"rate_limit_costs":[{"zone":"tokens","result":"failed","booked":500,"cost":500}]`)
	})
}

// TestTokensAfterACrash: if Caddy dies in the middle of a stream, what was booked stays.
func TestTokensAfterACrash(t *testing.T) {
	t.Parallel()
	m := startModel(t)
	site := tokenSite(redis(redistest.Start(t).Addr()))
	victim := startCaddy(t, site, m.variable())
	client := newClient(t, "")
	for range 3 {
		response := victim.question(client, "me", question{Stream: true, Options: withUsage, Prompt: 9000, Say: 9000, Gate: "never"})
		defer response.Body.Close()
		if _, err := io.ReadFull(response.Body, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := victim.process.Kill(); err != nil {
		t.Fatal(err)
	}
	m.awaitInside(t, 0)
	survivor := startCaddy(t, site, m.variable())
	if k := survivor.spent("tokens", "me"); k.Used != 3*500 {
		t.Errorf("used %d after a crash, want the bookings of three streams, %d", k.Used, 3*500)
	}
	m.open("never")
}
