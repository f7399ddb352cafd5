package harness

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// ReadPage reads a file that must be there.
func ReadPage(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Localize changes a config of the docs so that it runs here: its sites are on the socket that the
// process inherits, and its upstream is the test's. It refuses requests when the store does not
// answer in time, which would otherwise hide wrong counts.
func Localize(config, store, upstream string) string {
	config = regexp.MustCompile(`(?m)^([a-z.]+\.example\.com|example\.com) \{$`).ReplaceAllStringFunc(config, func(site string) string {
		if host, _, _ := strings.Cut(site, " "); strings.Contains(config, "import ") {
			return "http://" + host + " {\nbind fd/3"
		}
		return ":80 {\nbind fd/3"
	})
	config = strings.ReplaceAll(config, "localhost:9000", upstream)
	config = strings.ReplaceAll(config, "on_store_error allow", "on_store_error deny")
	options := "{\nadmin unix/{$ADMIN}\npersist_config off\nauto_https off\nrate_limit {\n" + store + "}\n"
	sites, hasOptions := strings.CutPrefix(config, "{\n")
	return options + map[bool]string{false: "}\n"}[hasOptions] + sites
}
