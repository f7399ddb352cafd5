package english

import (
	"bytes"
	_ "embed"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"unicode"
)

// project has the words that dictionaries do not have, one a line.
//
//go:embed words.txt
var project string

// Spelling returns the words that neither aspell's dictionary nor words.txt has. names are words that
// comments may use: the names in the code.
func Spelling(aspell string, texts []Text, names map[string]bool) ([]Finding, error) {
	known := make(map[string]bool)
	for word := range strings.FieldsSeq(project) {
		known[word] = true
	}
	places := make(map[string][]string)
	for _, t := range texts {
		if t.Kind == Message {
			continue // names of things in other languages, patterns, formats
		}
		for i, line := range t.Lines {
			for _, word := range spelled(line) {
				lower := strings.ToLower(word)
				if known[word] || known[lower] || t.Kind == Comment && (names[word] || names[lower]) {
					continue
				}
				places[word] = append(places[word], fmt.Sprintf("%s:%d", t.File, t.First+i))
			}
		}
	}
	var input []string
	for word := range places {
		input = append(input, word)
	}
	slices.Sort(input)
	cmd := exec.Command(aspell, "list", "--lang=en_US", "--encoding=utf-8", "--ignore=2", "--ignore-case")
	cmd.Stdin = strings.NewReader(strings.Join(input, "\n") + "\n")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("aspell: %w: %s", err, stderr.String())
	}
	var findings []Finding
	for word := range strings.FieldsSeq(string(out)) {
		for _, place := range places[word] {
			findings = append(findings, Finding{place, `"` + word + `"`, "correct the word, write it as code, or add it to internal/testing/english/words.txt"})
		}
	}
	return findings, nil
}

// spelled returns the words of a line that can be spelled wrong: of letters, without capitals behind the
// first one. Paths, names with dots and numbers are left out.
func spelled(line string) []string {
	var found []string
	for field := range strings.FieldsSeq(line) {
		field = strings.Trim(field, ".,;:!?()[]{}<>\"'*…“”|")
		field = strings.TrimSuffix(strings.TrimSuffix(field, "'s"), "’s")
		if strings.ContainsFunc(field, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' && r != '\'' }) {
			continue
		}
		for word := range strings.SplitSeq(field, "-") {
			if len(word) > 2 && strings.ToLower(word[1:]) == word[1:] {
				found = append(found, word)
			}
		}
	}
	return found
}
