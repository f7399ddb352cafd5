package store

import (
	"context"
	"time"
)

const (
	// MaxReport is the longest report of a [Shared] store, in bytes, and MaxReports how many are read.
	MaxReport  = 32 << 10
	MaxReports = 64

	// ReportInterval is the time between two reports of a process while somebody looks, and CountInterval that
	// between two moments in which a process is counted.
	ReportInterval = 2 * time.Second
	CountInterval  = 5 * time.Second

	// LookLife is for how long a look makes processes report, and ReportLife for how long a report can be read.
	LookLife   = 20 * time.Second
	ReportLife = time.Minute
)

// Shared is a [Fleet] with servers that are asked, and that tell its processes about each other.
type Shared interface {
	Fleet

	// Probe asks the server, or all servers that hold states, and describes the one that takes
	// the longest, before a request needs it. It fails as Take does, and also if the login is wrong. Rights are told also
	// beside an error, and a right may be missing without one: only some zones may need it.
	Probe(ctx context.Context) (Server, error)

	// Announce sets a text of this process. The others can read it when it is counted for the next time. Announce does not wait.
	Announce(text string)

	// Announcements returns the texts of at most n processes, this one among them. The text of
	// a process that has told none is empty.
	Announcements(ctx context.Context, n int) (texts []string, err error)

	// Report sets the function that writes the reports of this process. It gets the last wish of people who look, and
	// returns at most MaxReport bytes. It is called by one goroutine, and must not wait.
	Report(write func(wish string) string)

	// Look returns the reports of all processes, those of this one too, and makes them report for LookLife. Others learn of
	// a first look within some seconds, so their first report takes that long. A wish is a text for the functions that write
	// reports; without one, the last wish holds. Reports are read once in a ReportInterval, however often Look is called, and up to
	// four times as often while one that was just asked for may come. It fails as Take does, with the last reports.
	Look(ctx context.Context, wish string) ([]Report, error)
}

// Report is what is of one process about itself. Another program that may write to the store may have written it.
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
