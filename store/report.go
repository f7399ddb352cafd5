package store

import (
	"context"
	"time"
)

const (
	// MaxReport is the longest report of a [Shared] store, in bytes, and MaxReports how many are read.
	MaxReport  = 32 << 10
	MaxReports = 64

	// CountInterval is the time between two moments in which a process is counted, and reports.
	CountInterval = 5 * time.Second

	// LookLife is for how long a look makes processes report all, and ReportLife how much longer than a process counts its
	// report can be read.
	LookLife   = 20 * time.Second
	ReportLife = time.Minute
)

// Shared is a [Fleet] with servers that are asked, and that tell its processes about each other.
type Shared interface {
	Fleet

	// Probe asks the server, or all servers that hold states, before a request needs it, and returns the condition of the one
	// that takes the longest. Its Evicts is the policy of any server that removes keys while it is full, and empty if none does:
	// then they forget clients that are refused. Probe fails as Take does, and also if the login is wrong.
	Probe(ctx context.Context) (Condition, error)

	// Report sets what this process reports when it is counted: brief while nobody looks, and what all returns while somebody
	// does. Both have at most MaxReport bytes. All is called by one goroutine, and must not wait. Report does not wait.
	Report(brief string, all func() string)

	// Look returns the reports of all processes. If it asks, they report all for LookLife, from the next time on that each is
	// counted. It fails as Take does, with the last reports.
	Look(ctx context.Context, asks bool) ([]Report, error)
}

// Report is what is of one process about itself. Another program that may write to the store may have written it.
type Report struct {
	// Process is the name of the process.
	Process string

	// Lives says that the process was counted lately: see [Fleet]. Left says that it has closed its store.
	Lives, Left bool

	// At is when the process was last counted, and has reported, and Age how long ago that was, both by the clock of the store. Text
	// is empty if there is no report.
	At   time.Time
	Age  time.Duration
	Text string
}
