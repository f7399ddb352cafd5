package docs_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// form is an option in a block of the syntax of docs/reference.md, with its arguments as the page has them.
type form struct {
	block, option, arguments string
	opens                    bool // a block follows
}

var syntaxFence = regexp.MustCompile("(?ms)^```text\n(.*?)^```$")

// forms returns the options in the blocks of syntax.
func forms(t *testing.T) (found []form) {
	t.Helper()
	for _, match := range syntaxFence.FindAllStringSubmatch(read(t, "docs/reference.md"), -1) {
		open := []string{""} // the blocks, outermost first
		for line := range strings.Lines(match[1]) {
			words := strings.Fields(line)
			switch {
			case len(words) == 0:
			case words[0] == "}":
				open = open[:len(open)-1]
			case len(open) == 1: // the first line, which opens the block
				open = append(open, opened(words))
			default:
				f := form{block: open[len(open)-1], option: words[0]}
				if words[len(words)-1] == "{" {
					f.opens, words = true, words[:len(words)-1]
					inside := f.option
					if inside == "plan" {
						inside = "plans"
					}
					open = append(open, inside)
				}
				f.arguments = strings.Join(words[1:], " ")
				if f.opens = f.opens || strings.HasSuffix(f.arguments, "{ ... }"); f.opens {
					f.arguments = strings.TrimSpace(strings.TrimSuffix(f.arguments, "{ ... }"))
				}
				found = append(found, f)
			}
		}
	}
	return found
}

// opened is the block that the first line of a piece of syntax opens.
func opened(words []string) string {
	switch words[0] {
	case "rate_limit":
		return "directive"
	case "store":
		return "store " + words[1]
	}
	return words[0]
}

// samples are values for the names in angle brackets.
var samples = map[string]string{
	"date|time": "2099-01-01", "n": "5", "placeholder": "{http.vars.x}", "duration": "10s", "bits": "24", "status": "429", "code": "429", "code|2xx": "401",
	"events": "5", "windows": "24", "window": "10s", "algorithm": "token_bucket", "zone": "UTC", "name": "memory", "text": "x", "field": "RateLimit",
	"percent": "50", "fraction": "0.5", "size": "1MiB", "path": "usage.tokens", "divisor": "4", "address|CIDR": "192.0.2.1",
	"matcher": "path /x", "host:port|unix//path": "127.0.0.1:6379", "redis://...": "redis://127.0.0.1", "file": "/x.pem", "key": "/y.pem",
	"plan": "free", "class": "paying", "value": "x", "challenge": "Bearer", "weight": "4",
}

var (
	angle    = regexp.MustCompile(`<([^>]+)>`)
	optional = regexp.MustCompile(` ?\[[^\[\]]*\]`)
	brackets = regexp.MustCompile(`[\[\]]`)
)

// alternatives returns the least and the most arguments of each of the forms in one, with samples. More than
// the most is allowed only if the form is open.
func (f form) alternatives(t *testing.T) (least, most []string, isOpen bool) {
	t.Helper()
	for alternative := range strings.SplitSeq(f.arguments, " | ") {
		isOpen = isOpen || strings.Contains(alternative, "...") || strings.Contains(alternative, "<matcher>")
		alternative = strings.ReplaceAll(alternative, ">...", ">")
		alternative = strings.ReplaceAll(alternative, "spring...", "spring")
		short := alternative
		for optional.MatchString(short) {
			short = optional.ReplaceAllString(short, "")
		}
		least = append(least, f.fill(t, short))
		most = append(most, f.fill(t, brackets.ReplaceAllString(alternative, "")))
	}
	return least, most, isOpen
}

// fill puts samples in, and of words with | between the first.
func (f form) fill(t *testing.T, text string) string {
	t.Helper()
	text = angle.ReplaceAllStringFunc(text, func(name string) string {
		sample := samples[name[1:len(name)-1]]
		if sample == "" {
			t.Errorf("%s: no sample for %s", f.option, name)
		}
		return sample
	})
	words := strings.Fields(text)
	for i, word := range words {
		words[i], _, _ = strings.Cut(word, "|")
	}
	return strings.Join(words, " ")
}

// adapts returns the error of the option with these arguments.
func (f form) adapts(arguments string) error {
	line := strings.TrimSpace(f.option + " " + arguments)
	if f.opens {
		line += " {\n}"
	}
	_, _, err := caddytest.Adapt(strings.Replace(caddytest.Blocks[f.block], "?", line, 1))
	return err
}

// TestReferenceForms: the parser accepts the arguments that the page says, and no more and no fewer.
func TestReferenceForms(t *testing.T) {
	wrong := regexp.MustCompile(`[Ww]rong argument|unexpected line|unknown option|already specified|invalid|must be a whole|takes |to read is missing|is not a |reads json`)
	seen := make(map[string][]string)
	for _, f := range forms(t) {
		if caddytest.Blocks[f.block] == "" {
			continue // a plan has any name
		}
		seen[f.block] = append(seen[f.block], f.option)
		least, most, isOpen := f.alternatives(t)
		for _, arguments := range append(least, most...) {
			if err := f.adapts(arguments); err != nil && wrong.MatchString(err.Error()) {
				t.Errorf("%s of %s does not take %q, as its form %q says: %v", f.option, f.block, arguments, f.arguments, err)
			}
		}
		if !slices.Contains(least, "") && f.adapts("") == nil {
			t.Errorf("%s of %s takes no argument, and its form is %q", f.option, f.block, f.arguments)
		}
		longest := slices.MaxFunc(most, func(a, b string) int { return cmp.Compare(len(strings.Fields(a)), len(strings.Fields(b))) })
		if err := f.adapts(longest + " more"); !isOpen && (err == nil || fmt.Sprint(f.adapts(longest)) == err.Error()) {
			t.Errorf("%s of %s takes one argument more than %q", f.option, f.block, f.arguments)
		}
	}
	for block := range caddytest.Blocks {
		if block == "global" || block == "plan" {
			continue // with the options of other blocks
		}
		slices.Sort(seen[block])
		if want := caddytest.Options(t, block); !slices.Equal(seen[block], want) {
			t.Errorf("%s: the page has forms of %q, the parser accepts %q", block, seen[block], want)
		}
	}
}
