package docs_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/jsondoc"
)

// sections are the headings under which docs/reference.md has the options of a block.
var sections = map[string]string{
	"directive": "The directive", "zone": "A zone", "charge": "Responses that count", "cost_request": "Costs in requests",
	"cost_response": "Costs in responses", "store memory": "Store memory", "store redis": "Store redis",
	"tls": "Store redis", "distributed": "Other limiters", "adaptive_concurrency": "adaptive_concurrency",
}

// objects are the objects of the JSON that have the fields of the options under a heading.
var objects = map[string][]string{
	"The directive": {"handler"}, "A zone": {"zone", "limit"}, "Responses that count": {"charge_on_response"},
	"Costs in requests": {"cost_request"}, "Costs in responses": {"cost_response"},
	"Store memory": {"memory"}, "Store redis": {"redis", "tls"}, "Other limiters": {"distributed"}, "adaptive_concurrency": {"adaptive"},
}

// row is an option of a table: its name, its default, its range, the anchors of its JSON fields. Without a link, the
// field has the name of the option.
type row struct {
	name, usual, span string
	fields            []string
}

var (
	rowPattern   = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*?) \\| (.*?) \\| (.*?) \\| .* \\|$")
	fieldPattern = regexp.MustCompile(`\(json\.md#([^)]+)\)`)
)

// rowsOf returns the rows in a section of the page.
func rowsOf(t *testing.T, page, section string) (rows []row) {
	t.Helper()
	_, text, found := strings.Cut(page, "\n## "+section+"\n")
	if !found {
		t.Fatalf("docs/reference.md has no section %q", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	for _, match := range rowPattern.FindAllStringSubmatch(text, -1) {
		r := row{name: match[1], usual: strings.TrimSpace(match[2]), span: strings.TrimSpace(match[3])}
		for _, field := range fieldPattern.FindAllStringSubmatch(match[4], -1) {
			r.fields = append(r.fields, field[1])
		}
		if strings.TrimSpace(match[4]) == "" {
			for _, object := range objects[section] {
				r.fields = append(r.fields, object+"-"+r.name)
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// TestReferenceHasEachOption: the tables have the options that the parser accepts, and no others.
func TestReferenceHasEachOption(t *testing.T) {
	page := read(t, "docs/reference.md")
	documented, known := make(map[string][]string), make(map[string][]string)
	for block, section := range sections {
		known[section] = append(known[section], caddytest.Options(t, block)...)
		documented[section] = nil
	}
	for section := range documented {
		for _, r := range rowsOf(t, page, section) {
			documented[section] = append(documented[section], r.name)
		}
		slices.Sort(documented[section])
		slices.Sort(known[section])
		if !slices.Equal(documented[section], known[section]) {
			t.Errorf("%s: the page has %q, the parser %q", section, documented[section], known[section])
		}
	}
	for _, block := range []string{"global", "plan"} { // in words
		section, what := "The directive", []string{"zone", "distributed", "storage"}
		of := caddytest.Options(t, "directive")
		if block == "plan" {
			section, of = "Plans", nil
			what = caddytest.Options(t, block)
		}
		_, text, _ := strings.Cut(page, "\n## "+section+"\n")
		for _, option := range what {
			if !strings.Contains(text, "`"+option+"`") {
				t.Errorf("%s: %s is missing", section, option)
			}
		}
		if of != nil {
			of = slices.DeleteFunc(of, func(option string) bool { return slices.Contains(what, option) })
			if got := caddytest.Options(t, block); !slices.Equal(got, of) {
				t.Errorf("the global option takes %q, the page says %q", got, of)
			}
		}
	}
}

// TestReferenceAndJSON: each field of the JSON is that of an option, with the same default and range.
func TestReferenceAndJSON(t *testing.T) {
	page := read(t, "docs/reference.md")
	fields := make(map[string]*jsondoc.Field)
	eachField(t, func(_ *testing.T, o *jsondoc.Object, f *jsondoc.Field) { fields[o.Anchor(f)] = f })
	linked := make(map[string]bool)
	for _, match := range fieldPattern.FindAllStringSubmatch(page, -1) {
		linked[match[1]] = true
	}
	all := slices.Compact(slices.Sorted(maps.Values(sections)))
	for _, section := range append(all, "Plans") {
		for _, r := range rowsOf(t, page, section) {
			i := slices.IndexFunc(r.fields, func(anchor string) bool { return fields[anchor] != nil })
			if i < 0 {
				t.Errorf("%s: %s is no field of the JSON", section, r.name)
				continue
			}
			f := fields[r.fields[i]]
			linked[r.fields[i]] = true
			if literal := f.Literal(); literal != "" && strings.Trim(r.usual, "`") != literal {
				t.Errorf("%s: the default of %s is %q, and in JSON %s", section, r.name, r.usual, literal)
			}
			if span := f.Range(); span != "" && !strings.HasPrefix(r.span, span) {
				t.Errorf("%s: the range of %s is %q, and in JSON %s", section, r.name, r.span, span)
			}
		}
	}
	for anchor := range fields {
		if !linked[anchor] {
			t.Errorf("no option sets the field %s", anchor)
		}
	}
}
