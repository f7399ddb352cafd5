package cli

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// TestSaysWhatItWaitsFor: a person learns what a command waits for after a second, and a program does not.
func TestSaysWhatItWaitsFor(t *testing.T) {
	for _, c := range []struct {
		takes  time.Duration
		person bool
		want   string
	}{
		{900 * time.Millisecond, true, ""},
		{1100 * time.Millisecond, true, "Waiting for reports ...\n"},
		{1100 * time.Millisecond, false, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			s := new(screen)
			if c.person {
				s.waits = &out
			}
			ended := s.waiting("reports")
			time.Sleep(c.takes)
			synctest.Wait()
			ended()
			if time.Sleep(time.Minute); out.String() != c.want {
				t.Errorf("%+v: %q", c, out.String())
			}
		})
	}
}
