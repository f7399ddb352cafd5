// Package golden keeps what tests expect in txtar archives: an archive for each subject, and in it a file for each
// case. With UPDATE_GOLDEN=1, tests write what they get.
//
//	-- the name of a case --
//	what a test reads or expects
//	-- the name of another case --
//	...
package golden

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
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
func Cases(t testing.TB, pattern string) []Case {
	t.Helper()
	all, err := cases(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func cases(pattern string) (all []Case, err error) {
	mu.Lock()
	defer mu.Unlock()
	paths, err := filepath.Glob(filepath.FromSlash(pattern))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		archive, err := load(path)
		if err != nil {
			return nil, err
		}
		for _, file := range archive.Files {
			all = append(all, Case{path, file.Name, string(file.Data)})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no cases", pattern)
	}
	return all, nil
}

// Open reads a case of an archive. While [Updating], it may be missing.
func Open(t testing.TB, archive, name string) Case {
	t.Helper()
	c, err := open(filepath.FromSlash(archive), name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func open(path, name string) (Case, error) {
	mu.Lock()
	defer mu.Unlock()
	archive, err := load(path)
	if err != nil && !Updating() {
		return Case{}, err
	}
	for _, file := range archive.Files {
		if file.Name == name {
			return Case{path, name, string(file.Data)}, nil
		}
	}
	if !Updating() {
		return Case{}, fmt.Errorf("%s: no case %s", path, name)
	}
	return Case{path, name, ""}, nil
}

// Check compares a case with what a test got, or writes that while [Updating].
func (c Case) Check(t testing.TB, got string) {
	t.Helper()
	if err := c.check(got); err != nil {
		t.Error(err)
	}
}

func (c Case) check(got string) error {
	switch {
	case got == c.Text:
		return nil
	case Updating():
		return c.write(got)
	}
	return fmt.Errorf("%s (UPDATE_GOLDEN=1 writes it)\n got: %s\nwant: %s", c, got, c.Text)
}

// String names the case and its archive.
func (c Case) String() string { return c.Archive + ": " + c.Name }

// write replaces the case in its archive, or puts it at the end.
func (c Case) write(text string) error {
	mu.Lock()
	defer mu.Unlock()
	archive, err := load(c.Archive)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	at := -1
	for i, file := range archive.Files {
		if file.Name == c.Name {
			at = i
		}
	}
	if at < 0 {
		at = len(archive.Files)
		archive.Files = append(archive.Files, txtar.File{Name: c.Name})
	}
	archive.Files[at].Data = []byte(text)
	written := txtar.Format(archive)
	if again := txtar.Parse(written); len(again.Files) != len(archive.Files) || !bytes.Equal(again.Files[at].Data, []byte(text)) {
		return fmt.Errorf("%s: an archive cannot have this text, because it has a line like -- name --, or no line feed at its end: %q", c, text)
	}
	return os.WriteFile(c.Archive, written, 0o644)
}

// load reads an archive. If there is an error, the archive is empty.
func load(path string) (*txtar.Archive, error) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		return new(txtar.Archive), err
	}
	found := make(map[string]bool)
	for _, file := range archive.Files {
		if found[file.Name] {
			return new(txtar.Archive), fmt.Errorf("%s: there are two cases %s", path, file.Name)
		}
		found[file.Name] = true
	}
	return archive, nil
}

var mu sync.Mutex // for the archives
