package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
)

// TestReplayArguments: limits on the command line.
func TestReplayArguments(t *testing.T) {
	var tries []replay.Try
	for _, text := range []string{"clients=60/1m, 200/1m", "slots=5"} {
		if err := readTries(&tries)(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if len(tries) != 3 || tries[1] != (replay.Try{Zone: "clients", Rate: "200/1m"}) {
		t.Errorf("%+v", tries)
	}
	if err := readTries(&tries)("60/1m"); err == nil || err.Error() != "write it as 'clients=60/1m,200/1m'" {
		t.Error(err)
	}
}

// TestReplayPageIsPrivate: the page is a new file that only its owner may read, whatever was there.
func TestReplayPageIsPrivate(t *testing.T) {
	dir := t.TempDir()
	public, other, link := filepath.Join(dir, "public.html"), filepath.Join(dir, "other"), filepath.Join(dir, "link.html")
	for _, name := range []string{public, other} {
		if err := os.WriteFile(name, []byte("before"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{public, link, filepath.Join(dir, "new.html")} {
		if err := writePage(name, new(replay.Result)); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(name); err != nil || info.Mode() != 0o600 || info.Size() < 1000 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "before" {
		t.Errorf("what the link points to was written to: %v", err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 4 {
		t.Errorf("files are left: %v", names)
	}
	if err := writePage(filepath.Join(dir, "no", "page.html"), new(replay.Result)); err == nil {
		t.Error("a directory that is missing is no error")
	}
}
