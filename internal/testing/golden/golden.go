// Package golden keeps what tests expect in txtar archives: an archive for each subject, and in it a file for each
// case. With UPDATE_GOLDEN=1, tests write what they get.
//
//	-- the name of a case --
//	what a test reads or expects
//	-- the name of another case --
//	...
package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"
)

// Case is a file of an archive.
type Case struct {
	Archive string // the path of the archive
	Name    string
	Text    string // ends with a line feed
}

// Updating reports whether tests write what they get instead of comparing it.
func Updating() bool { return os.Getenv("UPDATE_GOLDEN") != "" }

// Cases reads all cases of the archives that match a pattern of [filepath.Glob]. There must be one at least.
func Cases(t testing.TB, pattern string) (all []Case) {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	paths, err := filepath.Glob(filepath.FromSlash(pattern))
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archive.Files {
			all = append(all, Case{path, file.Name, string(file.Data)})
		}
	}
	if len(all) == 0 && !Updating() {
		t.Fatalf("%s: no cases: %v", pattern, err)
	}
	return all
}

// Open reads a case of an archive. While [Updating], it may be missing.
func Open(t testing.TB, archive, name string) Case {
	t.Helper()
	for _, c := range Cases(t, archive) {
		if c.Name == name {
			return c
		}
	}
	if !Updating() {
		t.Fatalf("%s: no case %s", archive, name)
	}
	return Case{filepath.FromSlash(archive), name, ""}
}

// Check compares a case with what a test got, or writes that while [Updating].
func (c Case) Check(t testing.TB, got string) {
	t.Helper()
	switch {
	case got == c.Text:
	case !Updating():
		t.Errorf("%s (UPDATE_GOLDEN=1 writes it)\n got: %s\nwant: %s", c, got, c.Text)
	default:
		if err := c.write(got); err != nil {
			t.Error(err)
		}
	}
}

// String names the case and its archive.
func (c Case) String() string { return c.Archive + ": " + c.Name }

// write replaces the case in its archive, or puts it at the end.
func (c Case) write(text string) error {
	mu.Lock()
	defer mu.Unlock()
	archive, err := txtar.ParseFile(c.Archive)
	if os.IsNotExist(err) {
		archive, err = new(txtar.Archive), nil
	}
	if err != nil {
		return err
	}
	at := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == c.Name })
	if at < 0 {
		at = len(archive.Files)
		archive.Files = append(archive.Files, txtar.File{Name: c.Name})
	}
	archive.Files[at].Data = []byte(text)
	written := txtar.Format(archive)
	if again := txtar.Parse(written); len(again.Files) != len(archive.Files) || string(again.Files[at].Data) != text {
		return fmt.Errorf("%s: an archive cannot have this text, because it has a line like -- name --, or no line feed at its end: %q", c, text)
	}
	return os.WriteFile(c.Archive, written, 0o644)
}

var mu sync.Mutex // for the archives
