package protocol

import (
	"encoding/binary"
	"testing"
)

// TestChangesRead: a process learns which keys have changed since it has looked last, and if it cannot know, that all may
// have.
func TestChangesRead(t *testing.T) {
	t.Parallel()
	text := func(newest, n int64) string { // the marks are the numbers, a second apart
		var b []byte
		for i := newest; i > newest-n; i-- {
			b = binary.BigEndian.AppendUint64(b, uint64(i*1e6))
			b = binary.BigEndian.AppendUint64(b, uint64(i))
		}
		return string(b)
	}
	type look struct {
		text string
		news int // marks
		all  bool
	}
	for name, looks := range map[string][]look{
		"nothing yet":            {{"", 0, false}, {"", 0, false}, {text(5, 1), 1, false}, {text(5, 1), 0, false}},
		"a first look":           {{text(9, 3), 3, false}, {text(11, 5), 2, false}, {text(12, 6), 1, false}},
		"a first look at many":   {{text(9999, MaxChanges), MaxChanges, false}, {text(10_000, MaxChanges), 1, false}},
		"too many":               {{text(9, 3), 3, false}, {text(9+MaxChanges, MaxChanges), MaxChanges, true}, {text(10+MaxChanges, MaxChanges), 1, false}},
		"too many since nothing": {{"", 0, false}, {text(9999, MaxChanges), MaxChanges, true}},
		"lost":                   {{text(9, 3), 3, false}, {"", 0, true}, {"", 0, false}},
		"lost, and then others":  {{text(9, 3), 3, false}, {text(20, 2), 2, true}, {text(21, 3), 1, false}},
		"gone back":              {{text(9, 3), 3, false}, {text(8, 2), 2, true}},
		"damaged":                {{text(9, 3), 3, false}, {"damaged", 0, true}},
	} {
		var c Changes
		for i, l := range looks {
			if marks, all := c.Read(l.text); len(marks) != l.news || all != l.all {
				t.Errorf("%s, look %d: %d marks, all %v, want %d, %v", name, i, len(marks), all, l.news, l.all)
			}
		}
	}
	var c Changes
	crowd := make([]byte, MaxChanges*changeSize) // all at one moment: there may have been more
	if _, all := c.Read(string(crowd)); !all {
		t.Error("a first look at many changes of one moment does not say that there may be more")
	}
}
