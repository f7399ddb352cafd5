// Package suggest finds the word that a misspelled word most likely means.
package suggest

import "fmt"

const (
	// maxEdits is how many edits a suggestion may be away. A word that takes more is another word.
	maxEdits = 2

	// lettersPerEdit keeps short words from being suggested for each other: they have one edit
	// for each three letters.
	lettersPerEdit = 3
)

// Nearest returns the candidate that takes the fewest edits to get to from word, the first one if
// there are several. It returns "" if no candidate is near enough.
func Nearest(word string, candidates []string) string {
	nearest, fewest := "", min(maxEdits, len(word)/lettersPerEdit)+1
	for _, candidate := range candidates {
		if n := edits(word, candidate); n < fewest {
			nearest, fewest = candidate, n
		}
	}
	return nearest
}

// Hint asks whether the nearest candidate was meant. It returns "" if none is near enough.
func Hint(word string, candidates []string) string {
	if nearest := Nearest(word, candidates); nearest != "" {
		return fmt.Sprintf("; did you mean %q?", nearest)
	}
	return ""
}

// edits is how many bytes must be inserted, removed or replaced to get from a to b
// (V. Levenshtein, 1965).
func edits(a, b string) int {
	row := make([]int, len(b)+1) // from the bytes of a so far to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, replace)
		}
	}
	return row[len(b)]
}
