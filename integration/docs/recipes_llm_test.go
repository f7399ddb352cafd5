package docs_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// spendTokens checks the recipe of tokens a minute and requests in flight.
func spendTokens(t *testing.T, s *harness.Server, b *harness.Backend) {
	client := harness.NewClient(t, "")
	const alice, bob = "key-of-alice", "key-of-bob"
	for key, want := range map[string]int{"": http.StatusUnauthorized, "made-up": http.StatusForbidden} {
		if status := s.Answered(client, key, harness.Question{Say: 1}); status != want {
			t.Errorf("key %q: status %d, want %d", key, status, want)
		}
	}
	for _, q := range []harness.Question{{Prompt: 1000, Say: 100, MaxTokens: 500}, {Prompt: 1000, Say: 100, Stream: true, Options: harness.WithUsage}} {
		if status := s.Answered(client, alice, q); status != http.StatusOK {
			t.Fatalf("%+v: status %d", q, status)
		}
	}
	if status := s.Answered(client, alice, harness.Question{Fail: 500}); status != 500 {
		t.Errorf("status %d", status)
	}
	s.AwaitUsed("two answers and an error", "tokens", alice, 2200)
	if status := s.Answered(client, alice, harness.Question{MaxTokens: 18_000}); status != http.StatusTooManyRequests {
		t.Errorf("more than is left: status %d", status)
	}

	held := harness.Question{Stream: true, Options: harness.WithUsage, Prompt: 10, Say: 20, Gate: "streams", MaxTokens: 100}
	for range 3 {
		response := s.Question(client, bob, held)
		defer response.Body.Close()
		if _, err := io.ReadFull(response.Body, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
	}
	if status := s.Answered(client, bob, held); status != http.StatusTooManyRequests {
		t.Errorf("a fourth in flight: status %d", status)
	}
	b.Open("streams")
	s.AwaitUsed("three streams", "tokens", bob, 3*30)
}

// spendBudget checks the recipe of a budget for a language model.
func spendBudget(t *testing.T, s *harness.Server, b *harness.Backend) {
	client := harness.NewClient(t, "")
	const alice, bob = "key-of-alice", "key-of-bob"
	for key, want := range map[string]int{"": http.StatusUnauthorized, "made-up": http.StatusForbidden} {
		if status := s.Answered(client, key, harness.Question{Say: 1}); status != want {
			t.Errorf("key %q: status %d, want %d", key, status, want)
		}
	}
	await := func(what, key string, want int64) {
		t.Helper()
		s.AwaitUsed(what, "budget_day", key, want)
	}
	ok := func(key string, q harness.Question) {
		t.Helper()
		if status := s.Answered(client, key, q); status != http.StatusOK {
			t.Fatalf("%+v: status %d", q, status)
		}
	}
	// 1000 - 600/2 + 4*100, in JSON and in a stream.
	ok(alice, harness.Question{Prompt: 1000, Cached: 600, Say: 100, MaxTokens: 500})
	await("an answer", alice, 1100)
	ok(alice, harness.Question{Stream: true, Options: harness.WithUsage, Prompt: 1000, Cached: 600, Say: 100})
	await("a stream", alice, 2200)
	for _, status := range []int{500, 429, 400} {
		if got := s.Answered(client, alice, harness.Question{Fail: status}); got != status {
			t.Errorf("status %d, want %d", got, status)
		}
	}
	await("errors of the backend", alice, 2200)

	// A stream that does not say its cost: what was booked, 4*100 and a quarter of the body, and 8 events.
	silent := harness.Question{Stream: true, Prompt: 5000, Say: 1000, MaxTokens: 100}
	ok(alice, silent)
	patient.Until(t, "the price of a stream that does not say its cost", func() bool {
		used := s.Spent("budget_day", alice).Used
		return used > 2200+4*100+4*8 && used < 2200+4*100+4*8+100
	})

	// Three streams at once, and a fourth one when one of them is over.
	held := harness.Question{Stream: true, Options: harness.WithUsage, Prompt: 10, Say: 20, Gate: "streams"}
	for range 3 {
		response := s.Question(client, bob, held)
		defer response.Body.Close()
		if _, err := io.ReadFull(response.Body, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
	}
	if status := s.Answered(client, bob, held); status != http.StatusTooManyRequests {
		t.Errorf("a fourth stream: status %d", status)
	}
	ok(alice, harness.Question{Say: 1, MaxTokens: 1})
	b.Open("streams")
	await("three streams", bob, 3*(10+4*20))
	patient.Until(t, "room for another stream", func() bool { return s.Answered(client, bob, harness.Question{Say: 1, Prompt: 6}) == http.StatusOK })
	await("the fourth stream", bob, 3*(10+4*20)+10)

	// What does not fit in a minute is refused, by what it asks for: 100,000 output tokens.
	if status := s.Answered(client, bob, harness.Question{MaxTokens: 100_000}); status != http.StatusTooManyRequests {
		t.Errorf("more than a minute's: status %d", status)
	}
	// One request may cost more than was left, and the next one waits.
	ok(bob, harness.Question{Prompt: 1_900_000, Say: 1})
	await("a large request", bob, 3*(10+4*20)+10+1_900_004)
	if k := s.Spent("budget_minute", bob); k.Owed == 0 {
		t.Errorf("%+v, want a debt", k)
	}
	if status := s.Answered(client, bob, harness.Question{Say: 1}); status != http.StatusTooManyRequests {
		t.Errorf("with a debt: status %d", status)
	}
	ok(alice, harness.Question{Say: 1, MaxTokens: 1})
}
