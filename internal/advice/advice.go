// Package advice has what the program tells people to do. Each piece of advice is made once, so that
// a test can apply all that there is to the set-ups that it is for.
package advice

import (
	"fmt"
	"slices"
	"strings"
)

// Advice is a sentence that says what to do about something that is wrong.
type Advice struct {
	name, format string
	begins       string // what is the same in all texts
}

// Text is advice with its values filled in. Only an [Advice] makes one, or JSON in which another program sends one.
type Text struct{ said string }

// String returns the text.
func (t Text) String() string { return t.said }

// MarshalText implements [encoding.TextMarshaler]. It never fails.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.said), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. It never fails.
func (t *Text) UnmarshalText(text []byte) error {
	t.said = string(text)
	return nil
}

// all is the advice that there is. Packages make theirs while the program starts.
var all []*Advice

// New makes advice with a name and a beginning that are unique, from a format of package fmt.
func New(name, format string) *Advice {
	begins, _, _ := strings.Cut(format, "%")
	a := &Advice{name, format, begins}
	all = append(all, a)
	return a
}

// With fills in the values of the format.
func (a *Advice) With(values ...any) Text { return Text{fmt.Sprintf(a.format, values...)} }

// Name returns the name of the advice.
func (a *Advice) Name() string { return a.name }

// All returns all advice, in the order in which it was made.
func All() []*Advice { return slices.Clone(all) }

// Of returns the advice that a text was made from, or begins with; nil if there is none.
func Of(text string) (best *Advice) {
	for _, a := range all {
		if strings.HasPrefix(text, a.begins) && (best == nil || len(a.begins) > len(best.begins)) {
			best = a
		}
	}
	return best
}

// Split divides a text into what was found and the advice behind it, which is empty if there is none.
func Split(text string) (found string, fix Text) {
	for i := range text {
		if rest, ok := strings.CutPrefix(text[i:], "; "); ok && Of(rest) != nil {
			return text[:i], Text{rest}
		}
	}
	return text, Text{}
}
