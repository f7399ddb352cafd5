package limiter

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestStart: a request that comes before its config has started waits until it has, or will not.
func TestStart(t *testing.T) {
	for name, c := range map[string]struct {
		after func(s *Start, tearDown func(), leave func()) // what happens a second later
		want  error
		took  time.Duration
	}{
		"starts":          {func(s *Start, _, _ func()) { s.End(true) }, nil, time.Second},
		"does not start":  {func(s *Start, _, _ func()) { s.End(false); s.End(true) }, ErrNotStarted, time.Second},
		"is torn down":    {func(_ *Start, tearDown, _ func()) { tearDown() }, ErrNotStarted, time.Second},
		"the client left": {func(_ *Start, _, leave func()) { leave() }, ErrLeft, time.Second},
		"takes too long":  {func(*Start, func(), func()) {}, ErrNotStarted, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config, tearDown := context.WithCancel(t.Context())
				defer tearDown()
				client, leave := context.WithCancel(t.Context())
				defer leave()
				s := NewStart(config.Done(), 10*time.Second)
				time.AfterFunc(time.Second, func() { c.after(s, tearDown, leave) })
				began := time.Now()
				if err := s.wait(new(http.Request).WithContext(client)); err != c.want || time.Since(began) != c.took {
					t.Errorf("got %v after %v, want %v after %v", err, time.Since(began), c.want, c.took)
				}
				if s.ended() != (c.want == nil) {
					t.Errorf("ended is %v", s.ended())
				}
			})
		})
	}
}
