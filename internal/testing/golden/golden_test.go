package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// two is an archive with two cases.
const two = "Shells and what they print.\n-- first --\n$ echo 1\n1\n-- second --\n$ true\n"

// archives writes archives by their names, and returns their directory.
func archives(t *testing.T, texts ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, string(rune('a'+i))+".txtar"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestCases: cases come in the order of their archives, with their text as it is, also with line ends of Windows.
func TestCases(t *testing.T) {
	t.Setenv("UPDATE_GOLDEN", "")
	dir := archives(t, two, "-- crlf --\na\r\nb\r\n")
	all := Cases(t, dir+"/*.txtar")
	if len(all) != 3 || all[0].Name != "first" || all[0].Text != "$ echo 1\n1\n" || all[2].Text != "a\r\nb\r\n" || all[2].Archive != filepath.Join(dir, "b.txtar") {
		t.Errorf("got %q", all)
	}
	if got := Open(t, dir+"/a.txtar", "second"); got.Text != "$ true\n" || got.String() != filepath.Join(dir, "a.txtar")+": second" {
		t.Errorf("got %q", got)
	}
}

// TestCheck: with UPDATE_GOLDEN a difference is written, and nothing else changes in the archive.
func TestCheck(t *testing.T) {
	t.Setenv("UPDATE_GOLDEN", "")
	path := filepath.Join(archives(t, two), "a.txtar")
	c := Open(t, path, "first")
	c.Check(t, "$ echo 1\n1\n")
	if got := read(t, path); got != two {
		t.Errorf("comparing has written %s", got)
	}

	t.Setenv("UPDATE_GOLDEN", "1")
	c.Check(t, "$ echo 2\n2\n")
	Open(t, path, "third").Check(t, "new\n")
	if got, want := read(t, path), strings.ReplaceAll(two, "1", "2")+"-- third --\nnew\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, text := range []string{"no line feed", "a\n-- b --\n", "-- b --\n"} {
		if err := c.write(text); err == nil || !strings.Contains(err.Error(), "an archive cannot have this text") {
			t.Errorf("%q: %v", text, err)
		}
	}
	begun := filepath.Join(filepath.Dir(path), "begun.txtar")
	Open(t, begun, "first").Check(t, "1\n")
	if got := read(t, begun); got != "-- first --\n1\n" {
		t.Errorf("a new archive has %s", got)
	}
}
