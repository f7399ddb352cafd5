package harness

import (
	"context"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// Pending is a request in progress.
type Pending struct {
	t      *testing.T
	Leave  context.CancelFunc // hangs up
	done   chan struct{}
	Answer Answer
	Err    error
}

// Begin sends a request on a connection of its own, and does not wait for the answer.
func (s *Server) Begin(path string, header ...string) *Pending {
	ctx, leave := context.WithCancel(s.T.Context())
	p := &Pending{t: s.T, Leave: leave, done: make(chan struct{})}
	client := NewClient(s.T, "")
	go func() {
		defer close(p.done)
		defer leave()
		p.Answer, p.Err = send(ctx, client, s.URL(path), header)
	}()
	s.T.Cleanup(func() {
		leave()
		<-p.done
	})
	return p
}

// Result waits for the answer.
func (p *Pending) Result() Answer {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patient.Patience):
		p.t.Fatalf("no answer within %v", patient.Patience)
	}
	if p.Err != nil {
		p.t.Fatal(p.Err)
	}
	return p.Answer
}
