package world

import (
	"context"
	"fmt"
	"slices"
)

// Note has an instance write to the journal of changes what an operator has done.
const Note Kind = "Note"

var _ = operate(operation{Kind: Note, sort: operators, ask: deed(func(w *world, e *Event) error {
	return w.instance(e.Instance).store.AddToJournal(context.Background(), entryOf(e))
})})

// entryOf is what is written: no two events are at the same time.
func entryOf(e *Event) string { return fmt.Sprint("at ", e.At) }

// readJournal has an instance read all of the journal.
func (w *world) readJournal(in *instance) {
	var err error
	if w.history.Journal, err = in.store.ReadJournal(context.Background(), len(w.plan.Events)+1); err != nil {
		w.history.wrong("the journal cannot be read: %v", err)
	}
}

var _ = promise("the journal of changes has each entry once, in their order", (*History).journal)

// journal checks what the journal has in the end. Entries that failed, and those that Redis has lost, may be there or not. What
// failed may still be on its way, and come after what was written later.
func (h *History) journal() (violations []string) {
	at := make(map[string]int)
	for i, entry := range h.Journal {
		if _, twice := at[entry]; twice {
			violations = append(violations, fmt.Sprintf("the journal has %q twice", entry))
		}
		at[entry] = i
	}
	var notes []Deed
	for _, d := range h.Deeds {
		if _, there := at[entryOf(&h.Plan.Events[d.Event])]; d.Kind == Note && there {
			notes = append(notes, d)
		} else if d.Kind == Note && d.Failure == "" && !h.hasLost() && len(h.clocks) == 1 {
			violations = append(violations, fmt.Sprintf("the journal does not have what operator %d has written", d.Event))
		}
	}
	for _, a := range notes {
		for _, b := range notes {
			if a.Failure == "" && a.Ended < b.Began && slices.Index(h.Journal, entryOf(&h.Plan.Events[a.Event])) > slices.Index(h.Journal, entryOf(&h.Plan.Events[b.Event])) {
				violations = append(violations, fmt.Sprintf("the journal has operator %d before operator %d", b.Event, a.Event))
			}
		}
	}
	return violations
}
