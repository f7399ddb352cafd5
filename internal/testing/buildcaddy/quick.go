package buildcaddy

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// highlighter is a module that Caddy's templates and file_server color code with.
const highlighter = "github.com/alecthomas/chroma/v2"

// cuts are what is changed in the highlighter. At each start it reads 70 styles and 270 languages, which is more than
// half of what a command computes before it begins. The tests start over a thousand processes, and no test colors code.
var cuts = []struct{ file, old, new string }{
	{"styles/api.go", "//go:embed *.xml", "//go:embed swapoff.xml"},
	{"lexers/lexers.go", `"embedded/*.xml"`, `"embedded/[dmz][nye][sd]*.xml"`}, // some that init functions name
}

// quick makes a highlighter in a directory that is cut, and a go.mod beside it that has that one. It returns the flag
// that tells the go command so. There is none if the module in root does not need the highlighter.
func quick(root, dir string) (flags []string, err error) {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", highlighter)
	cmd.Dir, cmd.Env = root, environment()
	output, err := cmd.Output()
	source := strings.TrimSpace(string(output))
	if err != nil || source == "" {
		return nil, nil
	}
	sum := sha256.Sum256(fmt.Append(nil, cuts, source)) // which has the version
	copied := filepath.Join(dir, fmt.Sprintf("%x", sum[:8]))
	if _, err := os.Stat(copied); err != nil {
		if err := cut(source, copied); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		if name == "go.mod" {
			text = fmt.Appendf(text, "\nreplace %s => %s\n", highlighter, copied)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	return []string{"-modfile=" + filepath.Join(dir, "go.mod")}, nil
}

// environment is that of the go command, which takes no other go.mod in a workspace.
func environment() []string { return append(os.Environ(), "GOWORK=off") }

// cut copies the highlighter, all at once.
func cut(source, path string) error {
	beside, err := os.MkdirTemp(filepath.Dir(path), "cut")
	if err != nil {
		return err
	}
	defer os.RemoveAll(beside)
	if err := os.CopyFS(beside, os.DirFS(source)); err != nil {
		return err
	}
	for _, c := range cuts {
		file := filepath.Join(beside, filepath.FromSlash(c.file))
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		shorter := bytes.Replace(text, []byte(c.old), []byte(c.new), 1)
		if bytes.Equal(text, shorter) {
			return fmt.Errorf("%s of %s has no %q any longer: mend the cuts of package buildcaddy", c.file, source, c.old)
		}
		if err := os.Remove(file); err != nil { // which is read-only
			return err
		}
		if err := os.WriteFile(file, shorter, 0o600); err != nil {
			return err
		}
	}
	return os.Rename(beside, path)
}
