package integration_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestTokens: a request is charged what its body asks for, and then what the answer says, even in a stream, in every version of
// HTTP. The bodies pass unchanged, and a client whose tokens are used up is refused.
func TestTokens(t *testing.T) {
	m := harness.StartBackend(t, answerAsModel)
	config, versions := harness.EveryVersion(t, "", `
		log
		rate_limit {
			zone tokens {
				key           {header.X-Api-Key}
				algorithm     fixed_window 10000/year
				cost          {http.rate_limit.json.max_tokens} 500
				charge {
					json usage.prompt_tokens usage.completion_tokens
				}
			}
			`+harness.SharedStore(t)+`
		}
		reverse_proxy {$UPSTREAM}`)
	s := harness.One(t, config, m.Variable())
	all := versions(s)
	for _, to := range all {
		for i, q := range []asked{
			{Prompt: 60, Say: 640}, {Prompt: 60, Say: 640, Stream: true}, {MaxTokens: 3000, Prompt: 60, Say: 640},
		} {
			key := fmt.Sprintf("key%d-%d", to.Major, i)
			if status := answered(s, to, key, q); status != http.StatusOK {
				t.Errorf("HTTP/%d, %+v: status %d", to.Major, q, status)
			}
			s.AwaitUsed(key, "tokens", key, 700)
		}
	}
	s.AwaitLog(`"rate_limit_costs":[{"zone":"tokens","result":"read","booked":3000,"cost":700}]`)
	waits := question(s, all[0], "booked", asked{MaxTokens: 3000, Stream: true, Prompt: 9000, Say: 2000, Gate: "go"})
	if used := s.Spent("tokens", "booked").Used; used != 3000 {
		t.Errorf("%d are booked while an answer is under way, want 3000", used)
	}
	m.Open("go")
	_, _ = io.Copy(io.Discard, waits.Body)
	waits.Body.Close()
	s.AwaitUsed("a debt of 1000", "tokens", "booked", 10_000)
	if status := answered(s, all[0], "booked", asked{Say: 1}); status != http.StatusTooManyRequests {
		t.Errorf("a key with a debt: status %d", status)
	}
}

// TestChargeOnResponse: only failures are charged, as much as the upstream says, which the client is not told. A client that breaks its
// connection pays.
func TestChargeOnResponse(t *testing.T) {
	b := harness.StartBackend(t, func(b *harness.Backend, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			panic(http.ErrAbortHandler)
		}
		harness.AnswerAsAsked(b, w, r)
	})
	s, client := harness.One(t, harness.Caddyfile("", `
		rate_limit {
			zone failures {
				key         {header.X-Client}
				algorithm   fixed_window 100/year
				charge {
					header X-Tokens-Used
					status 401
				}
			}
			`+harness.SharedStore(t)+`
		}
		error /page 401
		error /other 404
		reverse_proxy {$UPSTREAM}
		handle_errors 401 {
			respond "we say 200" 200
		}
		handle_errors 404 {
			respond "we say 401" 401
		}`), b.Variable()), harness.NewClient(t, "")
	for i, c := range []struct {
		path, status, use string
		answer            int
		costs             int64
	}{
		{"/", "200", "7", 200, 0},
		{"/", "401", "", 401, 1},
		{"/", "401", "7", 401, 7},
		{"/broken", "", "", 502, 0},
		{"/page", "", "", 200, 0},
		{"/other", "", "", 401, 1},
	} {
		who := fmt.Sprint("client", i)
		a := s.Get(client, c.path, "X-Client", who, "X-Status", c.status, "X-Use", c.use)
		if a.Status != c.answer || a.Header.Get("X-Tokens-Used") != "" {
			t.Errorf("%+v: status %d, %v", c, a.Status, a.Header)
		}
		s.AwaitUsed(fmt.Sprintf("%+v", c), "failures", who, c.costs)
	}
	leaver := s.Begin("/", "X-Client", "leaver", "X-Gate", "never")
	b.AwaitInside(t, 1)
	leaver.Leave()
	b.AwaitInside(t, 0)
	s.AwaitUsed("who left before the answer", "failures", "leaver", 1)
}

// asked is what a client asks of the stand-in for a language model. The model answers with as many
// tokens as Say.
type asked struct {
	MaxTokens int64  `json:"max_tokens,omitempty"`
	Stream    bool   `json:"stream"`
	Prompt    int64  `json:"prompt"`
	Say       int64  `json:"say"`
	Gate      string `json:"gate,omitempty"` // the answer waits in the middle until it opens
}

// answerAsModel is the handler of a server of language models that speaks as OpenAI's does.
func answerAsModel(b *harness.Backend, w http.ResponseWriter, r *http.Request) {
	var q asked
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	usage := fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, q.Prompt, q.Say, q.Prompt+q.Say)
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
			case <-b.Gate(q.Gate):
			case <-r.Context().Done():
				return
			}
		}
	}
	say(`{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[],%s}`, usage)
	say("[DONE]")
}

// question sends a question in a version of HTTP, and returns the answer when its header is there.
func question(s *harness.Server, to harness.Version, key string, q asked) *http.Response {
	s.T.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		s.T.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.T.Context(), http.MethodPost, to.URL+"/v1/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		s.T.Fatal(err)
	}
	r.Host = "llm.example.com"
	if key != "" {
		r.Header.Set("X-Api-Key", key)
	}
	r.Header.Set("Content-Type", "application/json")
	if q.Say%2 == 0 {
		r.Header.Set("Accept-Encoding", "gzip, br")
	}
	response, err := to.Client.Do(r)
	if err != nil {
		s.T.Error(err)
		return &http.Response{Body: http.NoBody}
	}
	return response
}

// answered sends a question and reads the answer.
func answered(s *harness.Server, to harness.Version, key string, q asked) (status int) {
	s.T.Helper()
	response := question(s, to, key, q)
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		s.T.Error(err)
	}
	return response.StatusCode
}
