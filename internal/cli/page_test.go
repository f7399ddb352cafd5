package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// TestBrowserGetsNoSecret: the arguments of the browser's command, which all users of the machine
// can see, lead to the page and do not have its address.
func TestBrowserGetsNoSecret(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems open a browser by another command")
	}
	dir := t.TempDir()
	told := filepath.Join(dir, "told")
	script := "#!/bin/sh\necho \"$@\" > " + told + ".new && mv " + told + ".new " + told + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", dir)
	t.Setenv("DISPLAY", ":0")
	const address = "http://127.0.0.1:2020/secret/rate_limit/page/"
	clean := openBrowser(address)
	var args []byte
	patient.Until(t, "the browser to start", func() bool {
		var err error
		args, err = os.ReadFile(told)
		return err == nil
	})
	file := strings.TrimSpace(string(args))
	if strings.Contains(file, "secret") {
		t.Errorf("all users can see %q", file)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `content="0;url=`+address+`"`) {
		t.Errorf("the file does not lead to the page: %v\n%s", err, text)
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v", info.Mode())
	}
	clean()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file is left behind: %v", err)
	}
}
