package page

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestScriptsArePreloaded: the page names all its scripts, so that a browser does not find them one after the other.
func TestScriptsArePreloaded(t *testing.T) {
	all := files(t)
	var named, have []string
	for _, m := range regexp.MustCompile(`<link rel="modulepreload" href="(\w+\.js)">`).FindAllStringSubmatch(all[""], -1) {
		named = append(named, m[1])
	}
	for name := range all {
		if strings.HasSuffix(name, ".js") && name != "page.js" {
			have = append(have, name)
		}
	}
	slices.Sort(have)
	if !slices.Equal(named, have) {
		t.Errorf("the page preloads %v, want %v", named, have)
	}
}

// TestLegend: each color that a word can have is in the legend.
func TestLegend(t *testing.T) {
	all := files(t)
	kinds := map[string]bool{}
	for _, m := range regexp.MustCompile(`\.pill\.(\w+)`).FindAllStringSubmatch(all["page.css"], -1) {
		kinds[m[1]] = true
	}
	if len(kinds) < 7 {
		t.Fatalf("only the colors %v", kinds)
	}
	_, legend, _ := strings.Cut(all[""], `class="legend"`)
	for kind := range kinds {
		if !strings.Contains(legend, `class="pill `+kind+`"`) {
			t.Errorf("the legend does not explain %s", kind)
		}
	}
}
