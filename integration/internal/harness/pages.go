package harness

import (
	"os"
	"path/filepath"
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

// Recipe is a recipe of docs/recipes.md, or one of examples/recipes with commands of its own.
type Recipe struct{ Heading, Config, Commands string }

// Recipes returns all recipes with commands, and the functions that the commands use.
func Recipes(t *testing.T) (found []Recipe, functions string) {
	t.Helper()
	page := ReadPage(t, Root+"/docs/recipes.md")
	functions = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindStringSubmatch(page)[1]
	recipe := regexp.MustCompile("(?ms)^## ([^\n]*)\n(?:[^#`].*?)?^```caddyfile\n(.*?)^```$.*?^```sh\n(.*?)^```$")
	for _, match := range recipe.FindAllStringSubmatch(page, -1) {
		found = append(found, Recipe{match[1], match[2], match[3]})
	}
	if n := strings.Count(page, "\n## "); n != len(found) {
		t.Errorf("%d recipes, but %d with commands", n, len(found))
	}
	files, err := filepath.Glob(Root + "/examples/recipes/*/try.sh")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		_, commands, _ := strings.Cut(ReadPage(t, file), "\n") // behind the comment about the functions
		dir := filepath.Dir(file)
		found = append(found, Recipe{filepath.Base(dir), ReadPage(t, dir+"/Caddyfile"), commands})
	}
	return found, functions
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
