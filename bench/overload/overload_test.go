package main

import "testing"

// TestPromises: with each seed, each scenario has the useful answers that it promises, as a share of
// those under a static limit that is right for the upstream, and polite clients are served.
func TestPromises(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for seed := range int64(3) {
				c := &comparison{}
				c.note(s.best, play(s, seed+1, fixed(s.best, false)))
				r := play(s, seed+1, adaptive())
				if share := c.share(r); share < s.share {
					t.Errorf("seed %d: %.3f of the answers under a static limit of %d, promised %.2f", seed+1, share, s.best, s.share)
				}
				if served(r) < s.polite {
					t.Errorf("seed %d: served %.3f of %s, promised %.2f", seed+1, served(r), s.groups[0].name, s.polite)
				}
			}
		})
	}
}

// TestOneQueueStarves: what fair shares are for. With the best static limit and one queue, a hog leaves
// polite clients a third.
func TestOneQueueStarves(t *testing.T) {
	for _, s := range scenarios() {
		if s.name != "hog, 20 polite keys" {
			continue
		}
		if part := served(play(s, 1, fixed(s.best, true))); part > 0.5 {
			t.Errorf("served %.2f of the polite clients from one queue", part)
		}
		return
	}
	t.Error("no such scenario")
}
