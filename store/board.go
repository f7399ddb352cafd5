package store

import (
	"context"
	"time"
)

const (
	// MaxReport is the longest report on a [Board], in bytes, and MaxReports how many are read.
	MaxReport  = 32 << 10
	MaxReports = 64

	// ReportInterval is the time between two reports of a process while somebody looks at the board, and CountInterval that
	// between two moments in which a process is counted.
	ReportInterval = 2 * time.Second
	CountInterval  = 5 * time.Second

	// LookLife is for how long a look makes processes report, and ReportLife for how long a report can be read.
	LookLife   = 20 * time.Second
	ReportLife = time.Minute
)

// Board is a [Fleet] whose processes report about themselves while somebody looks. Without a look, a board asks its
// backend nothing that the fleet does not ask anyway.
type Board interface {
	Fleet

	// Report sets the function that writes the reports of this process. It gets the last wish of people who look, and
	// returns at most MaxReport bytes. It is called by one goroutine, and must not wait.
	Report(write func(wish string) string)

	// Look returns the reports of all processes, those of this one too, and makes them report for LookLife. Others learn of
	// a first look within some seconds, so their first report takes that long. A wish is a text for the functions that write
	// reports; without one, the last wish holds. Reports are read once in a ReportInterval, however often Look is called, and up to
	// four times as often while one that was just asked for may come. It fails as Take does, with the last reports.
	Look(ctx context.Context, wish string) ([]Report, error)
}

// Report is what is on a [Board] of one process. Another program that may write to the store may have written it.
type Report struct {
	// Process is the name of the process.
	Process string

	// Lives says that the process was counted lately: see [Fleet]. Left says that it has closed its store.
	Lives, Left bool

	// Counted is how long ago the process was last counted. A process that is well is counted once in a CountInterval.
	Counted time.Duration

	// Written is when the report was written, and Age how long ago that was, both by the clock of the store. Text is
	// empty if there is no report.
	Written time.Time
	Age     time.Duration
	Text    string
}
