package rig

import (
	"fmt"
	"os"
	"strings"
)

// Rewrite replaces the text between <!-- name --> and <!-- /name --> in a file.
func Rewrite(file, name, text string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	before, rest, found := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s has no %s ... %s", file, strings.TrimSpace(begin), end)
	}
	return os.WriteFile(file, []byte(before+begin+"\n"+strings.TrimSpace(text)+"\n\n"+end+after), 0o644)
}
