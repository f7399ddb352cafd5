// Package integration_test tests what only the whole server shows, once for each promise. Three instances and a Redis serve
// all tests in turn: [harness.One] and [harness.Three] load a test's config through the admin API, and
// [harness.SharedStore] has a key prefix of its own. The folders below have what needs processes of its own, or time.
package integration_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
