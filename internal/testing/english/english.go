// Package english checks what people read in this repository: pages, comments, messages. Its tests run
// over the whole repository. They find phrases that do not read as plain English, sentences that are too
// long, and words that no dictionary has.
package english

import (
	"fmt"
	"strings"
)

// Kind says where a text is.
type Kind int

// A Page is Markdown, a Comment is in Go, and a Message is a text in Go or in a page for browsers that
// a program prints.
const (
	Page Kind = iota
	Comment
	Message
)

// Text is a piece of prose that is read as a whole: a paragraph, an item of a list, a cell of a table, a
// comment, a message. Code in it is replaced by the word code, in capitals.
type Text struct {
	File string
	Kind Kind
	Cell bool // a cell of a table
	// Lines has the prose of each line, from the line First of the file on.
	First int
	Lines []string
}

// code is what code within a text is replaced by.
const code = "CODE"

// String returns the text in one line.
func (t Text) String() string { return strings.Join(t.Lines, " ") }

// at returns the file and the line of the byte offset in String.
func (t Text) at(offset int) string {
	line := t.First
	for _, l := range t.Lines {
		if offset <= len(l) {
			break
		}
		offset -= len(l) + 1
		line++
	}
	return fmt.Sprintf("%s:%d", t.File, line)
}

// Finding is something to mend.
type Finding struct {
	Place string // file:line
	Found string
	Cure  string
}

func (f Finding) String() string { return f.Place + ": " + f.Found + ": " + f.Cure }
