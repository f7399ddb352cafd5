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

// recipePages are the pages with recipes.
var recipePages = []string{"recipes.md", "recipes-api.md"}

// Recipe is a recipe as its page has it.
type Recipe struct{ Heading, Config, Commands, After string }

// Recipes returns all recipes, and the functions that their commands use, which each page has.
func Recipes(t *testing.T) (found []Recipe, functions string) {
	t.Helper()
	recipe := regexp.MustCompile("(?ms)^## ([^\n]*)\n(?:[^#`].*?)?^```caddyfile\n(.*?)^```$.*?^```sh\n(.*?)^```$((?:[^#]|#[^#])*)")
	for _, name := range recipePages {
		page := ReadPage(t, Root+"/docs/"+name)
		functions = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindStringSubmatch(page)[1]
		before := len(found)
		for _, match := range recipe.FindAllStringSubmatch(page, -1) {
			found = append(found, Recipe{match[1], match[2], match[3], match[4]})
		}
		if n := strings.Count(page, "\n## "); n != len(found)-before {
			t.Errorf("%s: %d recipes, but %d with commands", name, n, len(found)-before)
		}
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
