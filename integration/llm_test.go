package integration_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

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
