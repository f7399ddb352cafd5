package store

import "context"

const (
	// MaxJournal is how many entries a [Journal] keeps.
	MaxJournal = 1000

	// MaxJournalEntry is the longest entry, in bytes.
	MaxJournalEntry = 16 << 10
)

// Journal is a [Store] that keeps texts which all processes can read that share it, such as what operators have changed.
// Its methods ask the store's backend at once, and fail as Take does.
type Journal interface {
	// AddToJournal adds an entry of at most MaxJournalEntry bytes. If there are more than MaxJournal entries, the oldest
	// ones are removed.
	AddToJournal(ctx context.Context, entry string) error

	// ReadJournal returns the last n entries, the newest last.
	ReadJournal(ctx context.Context, n int) ([]string, error)
}
