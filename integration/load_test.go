package integration_test

import (
	"sync"
	"testing"
)

// together sends requests all at once, each on a connection of its own, and counts the answers by
// status.
func together(t *testing.T, requests int, url func(i int) string) map[int]int {
	t.Helper()
	client := newClient(t, "")
	answers := make([]answer, requests)
	errs := make([]error, requests)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range requests {
		group.Go(func() {
			<-start
			answers[i], errs[i] = send(client, url(i))
		})
	}
	close(start)
	group.Wait()
	got := make(map[int]int)
	for i := range requests {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		got[answers[i].status]++
	}
	return got
}
