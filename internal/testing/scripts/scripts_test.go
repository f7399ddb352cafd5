package scripts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../../.."

func read(file string) ([]byte, error) { return os.ReadFile(filepath.Join(root, file)) }

// TestScripts compares lua/loaded with what its parts make, or writes it with UPDATE_SCRIPTS=1.
func TestScripts(t *testing.T) {
	made, err := Make(read)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "lua/loaded/*"))
	if err != nil || len(files) != len(made) && os.Getenv("UPDATE_SCRIPTS") == "" {
		t.Errorf("lua/loaded has %d files, want %d: %v", len(files), len(made), err)
	}
	for file, want := range made {
		got, err := read(file)
		switch {
		case err == nil && string(got) == want:
		case os.Getenv("UPDATE_SCRIPTS") != "":
			if err := os.WriteFile(filepath.Join(root, file), []byte(want), 0o644); err != nil {
				t.Error(err)
			}
		default:
			t.Errorf("%s is not what its parts in lua make: run make scripts", file)
		}
	}
}

// TestScriptsOfBrokenParts: a part that is missing, or a port that does not say where it has charged, is an error.
func TestScriptsOfBrokenParts(t *testing.T) {
	for _, broken := range []func(file string) ([]byte, error){
		func(file string) ([]byte, error) {
			if file == "lua/write.lua" {
				return nil, errors.New("missing")
			}
			return read(file)
		},
		func(file string) ([]byte, error) {
			text, err := read(file)
			return []byte(strings.ReplaceAll(string(text), "[[charged ", "")), err
		},
	} {
		if _, err := Make(broken); err == nil {
			t.Error("a broken part made scripts")
		}
	}
}
