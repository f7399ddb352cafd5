//go:build !race

// The race detector would make these tests ten times as slow, and finds nothing in them: "make lint" runs
// them without it.

package english

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const root = "../../.."

// repository reads all that people read, once for all tests.
var repository = sync.OnceValues(func() (texts []Text, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			// The rules quote what they forbid.
			if path != root && (name[0] == '.' && name != ".github" || name == "testdata" || name == "english") {
				return filepath.SkipDir
			}
			return nil
		}
		read := func() string {
			var text []byte
			text, err = os.ReadFile(path)
			return string(text)
		}
		relative, _ := filepath.Rel(root, path)
		switch filepath.Ext(name) {
		case ".md":
			texts = append(texts, Markdown(relative, read())...)
		case ".go":
			var found []Text
			if source := read(); err == nil {
				found, err = Go(relative, []byte(source), names)
			}
			texts = append(texts, found...)
		case ".js", ".mjs", ".lua":
			if !strings.Contains(name, ".min.") {
				texts = append(texts, Script(relative, read(), names)...)
			}
		case ".html":
			texts = append(texts, HTML(relative, read())...)
		case ".sh", ".yml", ".yaml", ".conf", ".service", ".py", ".toml", ".env", "":
			if entry.Type().IsRegular() && name != "LICENSE" {
				texts = append(texts, Config(relative, read())...)
			}
		}
		return err
	})
	return texts, err
})

// names has the names in the Go code, once repository has returned.
var names = make(map[string]bool)

func read(t *testing.T) []Text {
	t.Helper()
	texts, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	if len(texts) < 5000 {
		t.Errorf("found only %d texts", len(texts))
	}
	return texts
}

// TestPlainEnglish: no page, comment or message has a phrase that was cured.
func TestPlainEnglish(t *testing.T) {
	for _, text := range read(t) {
		for _, finding := range Phrases(text) {
			t.Error(finding)
		}
	}
}

// TestSentences: the sentences of the pages are short. The changelog is a list of names.
func TestSentences(t *testing.T) {
	pages := make(map[string][]Text)
	for _, text := range read(t) {
		if text.Kind == Page && text.File != "CHANGELOG.md" {
			pages[text.File] = append(pages[text.File], text)
		}
	}
	for _, page := range pages {
		for _, finding := range Lengths(page) {
			t.Error(finding)
		}
	}
}

// TestSpelling: the dictionary of aspell or words.txt has every word of pages and comments. It needs
// aspell, which "make aspell" installs.
func TestSpelling(t *testing.T) {
	findings, err := Spelling(aspell(t), read(t), names)
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range findings {
		t.Error(finding)
	}
}

func aspell(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("aspell")
	if err != nil {
		if os.Getenv("REQUIRE_ASPELL") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return path
}

// TestPlaceholders: messages name placeholders as people write them in a Caddyfile, and say "in JSON" before a full
// name.
func TestPlaceholders(t *testing.T) {
	without := strings.NewReplacer("in JSON {http.", "", "{http.auth.", "", "{http.rate_limit.", "") // which have no short names
	named := 0
	for _, text := range read(t) {
		message := strings.Join(text.Lines, " ")
		if text.Kind != Message || !strings.HasSuffix(text.File, ".go") || !strings.Contains(message, "{http.") {
			continue
		}
		named++
		json := strings.HasPrefix(message, "plan: of is missing") || strings.HasPrefix(message, "%s must be a whole number") // no Caddyfile has these mistakes
		if !json && strings.Contains(without.Replace(message), "{http.") {
			t.Errorf("%s:%d: %q", text.File, text.First, message)
		}
	}
	if named == 0 {
		t.Error("no message has a full name")
	}
}

// TestRulesFind: each rule finds its phrase, also over the end of a line and in each kind of text.
func TestRulesFind(t *testing.T) {
	for _, r := range rules {
		if !r.pattern.MatchString(r.bad) {
			t.Errorf("the rule %s does not find %q", r.pattern, r.bad)
		}
		kinds := r.kinds
		if len(kinds) == 0 {
			kinds = []Kind{Page, Comment, Message}
		}
		for _, kind := range kinds {
			// Every blank is a new line: the finding is in the line where the phrase begins.
			text := Text{File: "a", Kind: kind, First: 10, Lines: strings.Fields(r.bad)}
			if len(Phrases(text)) == 0 {
				t.Errorf("nothing is found in %q", r.bad)
			}
		}
	}
}

// TestChecksFind: what is wrong in pages and Go files is found, with its file and line, and code is not.
func TestChecksFind(t *testing.T) {
	page := "# A page\n\nThe client is\ntold to `be it` so. See\n[the place](x#whom) " +
		"and `who is\ntold` [that it\nstands for](y).\n\n```\nIt is told.\n```\n\n| whom | `whom` |\n|---|---|\n\n- ok\n- a mispeled word, `mispeled` and mispeled_name\n"
	source := "package a\n\n// Full tells whether it has a mispeled\n// Mispelling. The zone stands\n// for mispelling.\n//\n//\twhom it is told\n" +
		"var mispelling = \"the store who is down\" // whom\n"
	script := "import { whom } from 'whom' // whom it is\n// It stands\n// for all.\nconst a = `for ${b('clients whom it refuses')} and {` + 1 / 2 + /whom it['/]is/.test(\"it's\")\n" +
		"const c = 'it\\'s a client whom it refuses'\nconst d = `clients whom ${`no ${e}`} it refuses` // ok\nconst f = \"a client whom it refuses\"\n"
	texts := Markdown("a.md", page)
	fromGo, err := Go("b.go", []byte(source), map[string]bool{})
	if err != nil {
		t.Fatal(err)
	}
	texts = append(texts, fromGo...)
	texts = append(texts, Script("c.js", script, map[string]bool{})...)
	texts = append(texts, Script("d.lua", "--[[whom]] local whom = 'whom is it' -- it need not\n-- It stands\n-- for all.\nwhom()", map[string]bool{})...)
	texts = append(texts, HTML("e.html", "<!-- whom -->\n<script>whom whom whom</script>\n<p title='whom'>It is for <code>a</code>\nclients, <b>whom</b> it stands\nfor.</p>\n"+
		"<a aria-label=\"clients whom it refuses\">{{.whom}}</a>")...)
	texts = append(texts, Config("f.yml", "#!whom\na: whom # whom\n# It stands\n# for all.\nsummary: those who {{ whom }} are refused\n")...)
	var got []string
	for _, text := range texts {
		for _, finding := range Phrases(text) {
			got = append(got, finding.Place+" "+finding.Found)
		}
	}
	want := `a.md:3 "is told to"
a.md:7 "stands for"
a.md:13 "whom"
b.go:3 "tells whether"
b.go:4 "stands for"
b.go:8 "whom"
b.go:8 "store who"
c.js:1 "whom"
c.js:2 "stands for"
c.js:4 "whom"
c.js:5 "whom"
c.js:6 "whom"
c.js:7 "whom"
d.lua:1 "whom"
d.lua:1 "need not"
d.lua:2 "stands for"
e.html:6 "whom"
e.html:4 "whom"
e.html:4 "stands for"
f.yml:3 "stands for"
f.yml:5 "those who"`
	if got := strings.Join(got, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	long := strings.Repeat("word ", 36) + "end."
	if got := Lengths(Markdown("a.md", "One two.\n\n"+long)); len(got) != 2 || got[0].Place != "a.md:3" {
		t.Errorf("a sentence of 37 words: %v", got)
	}
	if got := Lengths(Markdown("a.md", "One two three.\n\n"+long[5*20:])); len(got) != 0 {
		t.Errorf("a sentence of 17 words: %v", got)
	}
	findings, err := Spelling(aspell(t), texts, map[string]bool{"mispelling": true})
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	for _, finding := range findings {
		got = append(got, finding.Place+" "+finding.Found)
	}
	if got := strings.Join(got, "\n"); got != "a.md:17 \"mispeled\"\nb.go:3 \"mispeled\"" {
		t.Errorf("spelling: got\n%s", got)
	}
}

// table returns the cells of each row of the table below a heading.
func table(t *testing.T, file, heading string) (rows [][]string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, section, _ = strings.Cut(section, "\n|---|---|\n")
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			rows = append(rows, cells)
		}
	}
	return rows
}

// TestGlossary: the pages use every word of the glossary, and none that CONTRIBUTING.md says is not used.
func TestGlossary(t *testing.T) {
	var words, retired []string
	prose := make(map[string]string) // in lower case, by page
	for _, text := range read(t) {
		if text.Kind != Page {
			continue
		}
		if text.File != "docs/concepts.md" {
			prose[text.File] += " " + strings.ToLower(text.String())
		}
	}
	for _, cells := range table(t, "docs/concepts.md", "Glossary") {
		words = append(words, strings.Trim(strings.TrimSpace(cells[1]), "*"))
		if !strings.Contains(cells[2], "](") {
			t.Errorf("%s: no link to the page that explains it", cells[1])
		}
	}
	for _, cells := range table(t, "CONTRIBUTING.md", "Words that we do not use") {
		for word := range strings.SplitSeq(cells[1], ",") {
			retired = append(retired, strings.Trim(word, " `"))
		}
	}
	if len(words) < 30 || len(retired) < 8 {
		t.Errorf("found only %d words, and %d that are not used", len(words), len(retired))
	}
	if !slices.IsSorted(words) {
		t.Error("the words are not in the order of the alphabet")
	}
	for _, word := range words {
		used, pattern := 0, regexp.MustCompile(`\b`+word)
		for _, text := range prose {
			if strings.Contains(text, word) && pattern.MatchString(text) {
				used++
			}
		}
		if used < 2 {
			t.Errorf("%q is in the glossary, and on %d pages", word, used)
		}
	}
	for _, word := range retired {
		pattern := regexp.MustCompile(`\b` + word + `s?\b`)
		for file, text := range prose {
			if file != "CHANGELOG.md" && strings.Contains(text, word) && pattern.MatchString(text) {
				t.Errorf("%s: %q is a word that CONTRIBUTING.md says is not used", file, word)
			}
		}
	}
}
