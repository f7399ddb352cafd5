package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// lifeRows are the details of a zone that say why it is there, and until when.
func lifeRows(l *adminapi.Life) (rows [][]string) {
	if l.Note != "" {
		rows = append(rows, []string{"note", l.Note})
	}
	if l.Expires != nil {
		rows = append(rows, []string{"expires", l.Expires.State})
	}
	return rows
}

// printLives prints a line for each note and each expiry of zones, by their names, behind an empty line.
func (s *screen) printLives(zones map[string]*adminapi.Life) {
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(zones)) {
		for _, row := range lifeRows(zones[name]) {
			text := row[1]
			if row[0] == "note" {
				text = "note: " + text
			}
			rows = append(rows, []string{shellWord(name), text})
		}
	}
	if len(rows) > 0 {
		fmt.Fprintln(s.out)
		s.paragraphs(rows)
	}
}
