package page

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// offers are what the page offers or says to do, with the part of TestPage in integration/browser that does it,
// and then sees that it has helped.
var offers = map[string]string{
	"Let through": "testActions",
	"Raise":       "testActions",
	"Exempt":      "testActions",
	"Ban":         "testActions",
	"Unban":       "testActions",
	"Clear":       "testBans",

	"This zone has no overrides: add the option overrides to it.":                                                                  "testAdvice",
	"This zone has neither overrides nor bans.":                                                                                    "testAdvice", // by overrides
	"No zone allows them: add the option overrides to a zone, and its keys can be banned, exempted, or given limits of their own.": "testAdvice",
	"None. To ban a key, or to give it a limit of its own, look it up under Why?.":                                                 "testAdvice",
	"blocks all requests from ${plain(k.blocked_address)} with status ${k.block_status} (block). Only the config can change that.": "testAdvice",
	"rejects requests without a key with status ${k.status} (missing_key reject). Only the config can change that.":                "testAdvice",
	"Add a zone to its Caddyfile, and reload it:":                                                                                  "testReload",
}

var (
	// texts are those of a script; labels are those of the buttons for a key.
	texts  = regexp.MustCompile("'((?:[^'\\\\\n]|\\\\.)*)'|`((?:[^`\\\\]|\\\\.)*)`")
	labels = regexp.MustCompile(`\n    label: '(\w[^']*)'()`)

	// tells matches sentences that say what to do. A single word is a command or a method.
	tells = regexp.MustCompile(`(^|[;:,.] )(?i:set|write|use|give|lower|add|put|remove|correct|choose|match|check|name|look|see|try|to ban|only the config|this zone has n\w+ \w+ nor)\b.* .*[^?]$`)
)

// TestOffersAreFollowed: each offer of the page and each text that says what to do is in [offers].
func TestOffersAreFollowed(t *testing.T) {
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	left := maps.Clone(offers)
	for name, f := range all {
		if !strings.HasSuffix(name, ".js") || strings.HasPrefix(name, "uplot") {
			continue
		}
		found := labels.FindAllStringSubmatch(string(f.text), -1)
		for _, text := range texts.FindAllStringSubmatch(string(f.text), -1) {
			if tells.MatchString(text[1] + text[2]) {
				found = append(found, text)
			}
		}
		for _, text := range found {
			if offers[text[1]+text[2]] == "" {
				t.Errorf("%s: %q is not among the offers, so that nobody knows whether it is good", name, text[1]+text[2])
			}
			delete(left, text[1]+text[2])
		}
	}
	if len(left) > 0 {
		t.Errorf("the page no longer says %q", slices.Sorted(maps.Keys(left)))
	}
}

// TestOffersHaveTests: the tests that [offers] names exist.
func TestOffersHaveTests(t *testing.T) {
	tests := ""
	paths, err := filepath.Glob("../../integration/browser/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tests += string(text)
	}
	for offer, by := range offers {
		if !strings.Contains(tests, ", "+by+"},") || !strings.Contains(tests, "\nfunc "+by+"(") {
			t.Errorf("%s: there is no %s", offer, by)
		}
	}
}
