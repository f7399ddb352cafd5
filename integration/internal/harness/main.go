package harness

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/childprocess"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// Root is the path of the repository from the folder whose tests run: integration, or one in it.
var Root = root()

func root() string {
	if _, err := os.Stat("../go.mod"); err == nil {
		return ".."
	}
	return "../.."
}

// Main is the TestMain of each folder.
func Main(m *testing.M) {
	os.Setenv("TZ", NoonZone()) // the instances have it too, and zones may name the same place
	os.Exit(redistest.Main(func() int {
		defer endShared()
		return m.Run()
	}))
}

// NoonZone names a time zone in which it is about noon, so that no day ends during a test, and no screen says
// that something ends tomorrow. Etc/GMT+5 is west of Greenwich, five hours behind UTC.
func NoonZone() string { return fmt.Sprintf("Etc/GMT%+d", time.Now().UTC().Hour()-12) }

// Both build cmd/caddy once, when the first test asks for it, so that -list and runs of other
// tests do not wait for the linker. Commands are built without the race detector: they do one
// thing after the other, and start five times as fast. Where both have the race detector or neither,
// the server is the command too, so that it is linked once.
var (
	racing      = deep.Racing(1, 0) == 1
	buildServer = sync.OnceValues(func() (string, error) {
		if racing {
			return build("-race")
		}
		return build()
	})
	buildCommand = sync.OnceValues(func() (string, error) {
		if !racing || slices.Contains(strings.Fields(os.Getenv("GOFLAGS")), "-race") {
			return buildServer()
		}
		return build()
	})
)

func build(flags ...string) (path string, err error) {
	if err := watchSources(); err != nil {
		return "", err
	}
	return childprocess.BuildCaddy(Root, flags...)
}

// Binary returns the path of the Caddy to test.
func Binary(t *testing.T) string {
	t.Helper()
	return built(t, buildServer)
}

// CommandBinary returns the path of the Caddy for commands.
func CommandBinary(t *testing.T) string {
	t.Helper()
	return built(t, buildCommand)
}

func built(t *testing.T, build func() (string, error)) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// watchSources reads the files that the binary is made of. The go command caches the outcome of a
// test until a file changes that the test itself has read, and does not know what a compiler has
// read for the test.
func watchSources() error {
	return filepath.WalkDir(Root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != Root && (strings.HasPrefix(name, ".") || name == "integration"):
			return fs.SkipDir
		case slices.Contains([]string{".go", ".lua", ".mod", ".sum"}, filepath.Ext(name)) && !strings.HasSuffix(name, "_test.go"):
			_, err := os.Stat(path)
			return err
		}
		return nil
	})
}
