package docs_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	fences = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")
	links  = regexp.MustCompile(`\]\([^)]*\)`)
)

// rowsBelow returns the cells of each row of the table below a heading.
func rowsBelow(t *testing.T, file, heading string) (rows [][]string) {
	t.Helper()
	_, section, _ := strings.Cut(read(t, file), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, section, _ = strings.Cut(section, "\n|---|---|\n")
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			rows = append(rows, cells)
		}
	}
	return rows
}

// TestGlossary: the pages use each word of the glossary, and none that CONTRIBUTING.md says is not used.
func TestGlossary(t *testing.T) {
	prose := make(map[string]string) // in lower case, by page
	for _, file := range docPages(t) {
		if filepath.Base(file) != "concepts.md" {
			prose[file] = strings.ToLower(links.ReplaceAllString(fences.ReplaceAllString(read(t, file), ""), "]"))
		}
	}
	uses := func(pattern string) (files []string) {
		for file, text := range prose {
			if regexp.MustCompile(pattern).MatchString(text) {
				files = append(files, file)
			}
		}
		return files
	}
	var words []string
	for _, cells := range rowsBelow(t, "docs/concepts.md", "Glossary") {
		word := strings.Trim(strings.TrimSpace(cells[1]), "*")
		words = append(words, word)
		if !strings.Contains(cells[2], "](") {
			t.Errorf("%s: no link to the page that explains it", word)
		}
		if files := uses(`\b` + word); len(files) < 2 {
			t.Errorf("%q is in the glossary, and on %d pages", word, len(files))
		}
	}
	if len(words) < 30 || !slices.IsSorted(words) {
		t.Errorf("%d words, which must be in the order of the alphabet", len(words))
	}
	retired := rowsBelow(t, "CONTRIBUTING.md", "Words that we do not use")
	if len(retired) < 8 {
		t.Errorf("found only %d words that are not used", len(retired))
	}
	for _, cells := range retired {
		for word := range strings.SplitSeq(cells[1], ",") {
			word = strings.Trim(word, " `")
			if files := uses(`\b` + word + `s?\b`); len(files) > 0 {
				t.Errorf("%v: %q is a word that CONTRIBUTING.md says is not used", files, word)
			}
		}
	}
}
