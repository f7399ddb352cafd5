package engine

import (
	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
)

// EachDecided replays logs, and calls a function for each request with the status of its refusal, 0 if it passes.
func EachDecided(config []byte, o *replay.Options, decided func(uri string, status int)) error {
	c, err := offline.Provision(config)
	if err != nil {
		return err
	}
	defer c.Release()
	e, err := newSetup(c).newEngine(nil)
	if err != nil {
		return err
	}
	e.decided = func(w *way) { decided(w.URI, w.status) }
	_, err = read(o, []*engine{e})
	return err
}
