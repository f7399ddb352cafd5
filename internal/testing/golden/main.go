package golden

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Main runs the tests of a package, for its TestMain, and returns the exit code. A case in an archive below
// testdata that no test has opened is an error, unless flags have selected some of the tests.
func Main(m interface{ Run() int }) int {
	code := m.Run()
	if code != 0 || selective() {
		return code
	}
	if err := unread("testdata"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// selective reports whether flags let only some tests run.
func selective() bool {
	for _, name := range []string{"run", "skip", "list", "fuzz", "fuzzworker"} {
		if f := flag.Lookup("test." + name); f != nil && f.Value.String() != f.DefValue {
			return true
		}
	}
	return false
}

// unread names the cases below a directory, if there is one, that no test has opened.
func unread(dir string) error {
	mu.Lock()
	defer mu.Unlock()
	var all []error
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if path == dir && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || filepath.Ext(path) != ".txtar" {
			return err
		}
		archive, err := load(path)
		for _, file := range archive.Files {
			if !claimed[path][file.Name] {
				all = append(all, fmt.Errorf("%s: no test reads the case %s", path, file.Name))
			}
		}
		return err
	})
	return errors.Join(append(all, err)...)
}
