package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/filelock"
)

// lanes is how many test binaries can run at a time without ever choosing the same port: each takes the
// ports of one residue class. It divides busOffset, so that the port of the bus is in the same lane.
const lanes = 16

// laneFile is locked for as long as this process lives.
var laneFile *os.File

// lane is the residue class of this process's ports.
var lane = sync.OnceValue(func() int {
	for n := range lanes {
		file, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("redistest-ports-%d", n)), os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			continue // it belongs to another user
		}
		if filelock.TryLock(file) == nil {
			laneFile = file
			return n
		}
		_ = file.Close()
	}
	return os.Getpid() % lanes
})
