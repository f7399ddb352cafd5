package model_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/model"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/model/vectors"
)

// TestVectors plays the scenarios of testdata/vectors for which the model has rules. The model
// searches for every wait.
func TestVectors(t *testing.T) {
	for _, f := range vectors.Load(t, filepath.Join("..", "..", "..", "testdata", "vectors")) {
		for _, s := range f.Scenarios {
			if s.BeyondModel {
				continue
			}
			t.Run(f.Name+"/"+s.Title, func(t *testing.T) { s.Play(t, key{model.New(f.Algorithm)}) })
		}
	}
}

// key is a [vectors.Key].
type key struct{ *model.Key }

func (k key) Ahead(l algorithms.Limit, now, want int64, name string) (int64, time.Duration) {
	return k.Key.Ahead(l, now, 0, want, name)
}

func (k key) Take(l algorithms.Limit, now, cost int64, name string) algorithms.Decision {
	return k.Key.Take(l, now, cost, name, nil)
}
