// Package docs_test tests what users read: the pages, the examples, the changelog, and the notes for contributors.
package docs_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMain lets all tests begin at the root of the repository, as the paths in pages do.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)|<(?:img|source) [^>]*\bsrc(?:set)?="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	id      = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	code    = regexp.MustCompile("(?ms)^ *```.*?^ *```$|`[^`\n]*`")
	unnamed = regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`) // what GitHub leaves out of the name of a heading
)

// TestLinksInTheDocs: what the pages link to within the repository exists, and the headings too.
func TestLinksInTheDocs(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/migrate/*.md", "bench/*.md", "examples/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	found, names := 0, make(map[string]map[string]bool)
	for _, page := range pages {
		text := code.ReplaceAllString(read(t, page), "")
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target, fragment, _ := strings.Cut(match[1]+match[2], "#")
			if strings.Contains(target, "://") {
				continue
			}
			found++
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, target)
				continue
			}
			if fragment == "" {
				continue
			}
			if names[file] == nil {
				names[file] = anchors(read(t, file))
			}
			if !names[file][fragment] {
				t.Errorf("%s links to %s#%s: no such heading", page, target, fragment)
			}
		}
	}
	if found < 100 {
		t.Errorf("found only %d links", found)
	}
}

// TestDocsAreIndexed: docs/README.md links to each page.
func TestDocsAreIndexed(t *testing.T) {
	for _, page := range docPages(t) {
		index := filepath.Join(filepath.Dir(page), "README.md")
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(read(t, index), "]("+name+")") {
			t.Errorf("%s does not link to %s", index, name)
		}
	}
	if !strings.Contains(read(t, "docs/README.md"), "](migrate/README.md)") {
		t.Error("docs/README.md does not link to migrate/README.md")
	}
}

// docPages returns the pages under docs.
func docPages(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	migrate, err := filepath.Glob("docs/migrate/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(pages, migrate...)
}

// TestPagesAreShort: all pages together keep to a budget, so a feature that comes pays for its own text. Most of
// docs/reference.md is made from the code, a line for each option.
func TestPagesAreShort(t *testing.T) {
	const page, all = 10_000, 180_000
	longer := map[string]int{"docs/reference.md": 24_000}
	sum := 0
	for _, file := range append(docPages(t), "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md") {
		n := len(read(t, file))
		sum += n
		if most := cmp.Or(longer[file], page); n > most {
			t.Errorf("%s has %d bytes, more than %d", file, n, most)
		}
	}
	if sum > all {
		t.Errorf("the pages have %d bytes, more than %d", sum, all)
	}
}

// TestRunbooks: each alert has a section that says what to do.
func TestRunbooks(t *testing.T) {
	sections := anchors(read(t, "docs/operating.md"))
	alerts := regexp.MustCompile(`(?s)- alert: (\w+)\n.*?runbook_url: \S*/docs/operating\.md#(\S+)\n`).
		FindAllStringSubmatch(read(t, "examples/prometheus/alerts.yml"), -1)
	if len(alerts) < 5 {
		t.Errorf("found only %d alerts", len(alerts))
	}
	for _, alert := range alerts {
		if alert[2] != strings.ToLower(alert[1]) || !sections[alert[2]] {
			t.Errorf("no section for the alert %s, whose runbook is #%s", alert[1], alert[2])
		}
	}
}

// anchors returns the names of a page's headings, as GitHub makes them, and those that the page gives itself.
func anchors(text string) map[string]bool {
	names := make(map[string]bool)
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		name := strings.ToLower(match[1])
		name = unnamed.ReplaceAllString(name, "")
		names[strings.ReplaceAll(name, " ", "-")] = true
	}
	for _, match := range id.FindAllStringSubmatch(text, -1) {
		names[match[1]] = true
	}
	return names
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
