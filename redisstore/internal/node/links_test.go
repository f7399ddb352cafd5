package node

import (
	"sync"
	"testing"
	"time"
)

// A link that was put back for the first time comes with all that was noted about it. The race detector checks that.
func TestLinkIsPutBackWhole(t *testing.T) {
	const rounds = 200
	l := &links{used: make(chan struct{}, 2)}
	var all sync.WaitGroup
	all.Go(func() {
		for range rounds {
			l.used <- struct{}{}
			l.put(&link{made: time.Since(began)}, true)
		}
	})
	all.Go(func() {
		for taken := 0; taken < rounds; {
			if link := l.get(); link != nil {
				taken++
				if !link.up {
					t.Error("a link is free that was not used")
				}
				<-l.used // it is not put back
			}
		}
	})
	all.Wait()
	if n := l.count.Load(); n != rounds {
		t.Errorf("got %d links, want %d", n, rounds)
	}
}
