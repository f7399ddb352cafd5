package protocol

import (
	"os"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m.Run)) }
