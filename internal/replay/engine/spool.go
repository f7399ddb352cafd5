package engine

import (
	"cmp"
	"io"
	"os"

	"github.com/seed-161337e5/caddyratelimit/internal/replay"
)

// spooled are options for logs that can be read twice.
type spooled struct {
	replay.Options
	files []string // copies of the standard input
}

// spool copies the standard input to a file, if it is one of the logs.
func spool(o *replay.Options) (*spooled, error) {
	s := &spooled{Options: *o}
	s.Logs = append([]string(nil), o.Logs...)
	for i, name := range s.Logs {
		if name != "-" {
			continue
		}
		file, err := os.CreateTemp("", "caddy-rate-limit-*.log")
		if err != nil {
			s.remove()
			return nil, err
		}
		s.files, s.Logs[i] = append(s.files, file.Name()), file.Name()
		_, err = io.Copy(file, o.Input)
		if err := cmp.Or(err, file.Close()); err != nil {
			s.remove()
			return nil, err
		}
	}
	return s, nil
}

func (s *spooled) remove() {
	for _, file := range s.files {
		_ = os.Remove(file)
	}
}
