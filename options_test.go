package caddyratelimit_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// What options accept that others do not, by block and name: no value, several values, and any text.
var (
	withoutValue = words(`rate_limit: disable_metrics log_key distributed; zone: overrides dry_run lend allow_unknown_placeholders;
		store redis: require tls; tls: insecure_skip_verify`)
	severalValues = words(`rate_limit: storage; adaptive_concurrency: priority`)
	anyText       = words(`rate_limit: storage; zone: key cost_header; adaptive_concurrency: key; charge: header; tls: server_name; store redis: address password
		key_prefix master_name`)
	repeated = words(`rate_limit: zone header_name; zone: match exempt block; charge: header`)
)

// words reads a list of options of blocks.
func words(text string) map[option]bool {
	all := make(map[option]bool)
	for part := range strings.SplitSeq(text, ";") {
		block, names, _ := strings.Cut(part, ":")
		for name := range strings.FieldsSeq(names) {
			all[option{strings.TrimSpace(block), name}] = true
		}
	}
	return all
}

// option is an option of a block of [caddytest.Blocks]. The options of the directive are those of rate_limit.
type option struct{ block, name string }

func optionOf(block, name string) option {
	if block == "directive" || block == "global" {
		block = "rate_limit"
	}
	return option{block, name}
}

// TestOptionValues: each option of each block without a value, with too many, or with a wrong one, is an error that names the
// option, or the value and its line.
func TestOptionValues(t *testing.T) {
	for block, text := range caddytest.Blocks {
		for _, name := range caddytest.Options(t, block) {
			o := optionOf(block, name)
			if o.name == "zone" || o.block == "rate_limit" && o.name == "store" {
				continue // blocks of their own
			}
			for what, c := range map[string]struct {
				values string
				fine   map[option]bool
			}{
				"no value":    {"", withoutValue},
				"many values": {" wrong-1 wrong-2 wrong-3 wrong-4 wrong-5 wrong-6 wrong-7", severalValues},
				"wrong value": {" wrong-1", anyText},
			} {
				if got := tryLine(t, text, name+c.values); (got == "") != c.fine[o] {
					t.Errorf("%s: %s with %s: %q", block, name, what, got)
				} else if got != "" && !strings.Contains(strings.ReplaceAll(got, "_", " "), strings.ReplaceAll(name, "_", " ")) && !strings.Contains(got, "'wrong-") {
					t.Errorf("%s: %s with %s: the error does not name it: %s", block, name, what, got)
				}
			}
		}
	}
}

// tryLine loads a config whose block has one more line, and returns the error, or nothing.
func tryLine(t *testing.T, block, line string) string {
	t.Helper()
	const limit = "\nrate 1/1m"
	more := ""
	switch zone := "zone z {"; {
	case strings.Contains(block, zone+"\n\t\t\t?"):
		more = limit
	case strings.Contains(block, zone):
		block = strings.Replace(block, zone, zone+limit, 1)
	case !strings.HasPrefix(block, "{"):
		block = strings.Replace(block, "rate_limit {", "rate_limit {\n"+zone+"\nkey {client_ip}"+limit+"\n}", 1)
	}
	head, _, _ := strings.Cut(block, "?")
	config, _, err := caddytest.Adapt(strings.Replace(block, "?", line+more, 1))
	if err != nil {
		if at := fmt.Sprintf(":%d", strings.Count(head, "\n")+1); !strings.Contains(err.Error(), at) && !strings.Contains(err.Error(), `zone "z": `) {
			t.Errorf("%s: the error is not at line %s: %v", line, at, err)
		}
		return err.Error()
	}
	if strings.HasPrefix(block, "{") { // defaults are used by sites
		return tryGlobal(t, line)
	}
	if got := caddytest.ValidateJSON(t, config); !strings.HasPrefix(got, "ok") {
		return got
	}
	return ""
}

func tryGlobal(t *testing.T, line string) string {
	t.Helper()
	config, _, err := caddytest.Adapt("{\nrate_limit {\n" + line + "\n}\n}\n:80 {\nrate_limit {\nzone z {\nrate 1/1m\n}\n}\n}\n")
	if err != nil {
		return err.Error()
	}
	if got := caddytest.ValidateJSON(t, config); !strings.HasPrefix(got, "ok") {
		return got
	}
	return ""
}

// TestOptionsTwice: each option is in a case of testdata/adapt. Written twice, it is an error that names it, unless the option may
// be repeated.
func TestOptionsTwice(t *testing.T) {
	seen := make(map[option]bool)
	for _, g := range caddytest.Goldens(t, "testdata/adapt/*.txtar") {
		lines, open := strings.Split(g.Input, "\n"), []string{""}
		for i, line := range lines {
			words := strings.Fields(line)
			if len(words) == 0 {
				continue
			}
			if words[0] == "}" && len(open) > 1 {
				open = open[:len(open)-1]
				continue
			}
			block, name, end := open[len(open)-1], words[0], i+1
			if words[len(words)-1] == "{" {
				open = append(open, blockOf(block, words))
				for indent := line[:strings.Index(line, name)]; lines[end] != indent+"}"; end++ {
				}
				end++
			}
			if o := (option{block, name}); caddytest.Blocks[block] != "" && !seen[o] {
				seen[o] = true
				twice := slices.Concat(lines[:end], lines[i:end], lines[end:])
				_, _, err := caddytest.Adapt(strings.Join(twice, "\n"))
				said := fmt.Sprint(err)
				names := strings.Contains(strings.ReplaceAll(said, "_", " "), strings.ReplaceAll(name, "_", " "))
				if !repeated[optionOf(block, name)] && (!strings.Contains(said, " already specified") || !names) {
					t.Errorf("%s: %s of %s twice: %v", g, name, block, err)
				}
			}
		}
	}
	for block := range caddytest.Blocks {
		for _, name := range caddytest.Options(t, block) {
			if !seen[option{block, name}] {
				t.Errorf("option %s of %s is in no case of testdata/adapt", name, block)
			}
		}
	}
}

// TestJSONTypes: each field of a handler in JSON with a value of a wrong type is an error that names the field. An unknown
// field in each object is an error too.
func TestJSONTypes(t *testing.T) {
	tried := make(map[string]bool)
	for _, g := range caddytest.Goldens(t, "testdata/adapt/*.txtar") {
		all := g.Adapted(t)
		load := func() string {
			changed, err := json.Marshal(all)
			if err != nil {
				t.Fatal(err)
			}
			return caddytest.ValidateJSON(t, changed)
		}
		eachHandler(all, func(handler map[string]any) {
			eachObject(handler, "", func(path string, object map[string]any) {
				for name, value := range maps.Clone(object) {
					if at := path + "/" + name; !tried[at] && name != "handler" && name != "storage" {
						tried[at] = true
						object[name] = wrongType(value)
						if got := load(); strings.HasPrefix(got, "ok") || !strings.Contains(got, name) {
							t.Errorf("%s: %s is %v: %s", g.Name, at, object[name], got)
						}
						object[name] = value
					}
				}
				if at := path + "/?"; !tried[at] {
					tried[at] = true
					object["no_such_option"] = 1
					if got := load(); strings.HasPrefix(got, "ok") || !strings.Contains(got, "no_such_option") {
						t.Errorf("%s: %s has an unknown field: %s", g.Name, path, got)
					}
					delete(object, "no_such_option")
				}
			})
		})
	}
	if len(tried) < 100 {
		t.Errorf("only %d fields were tried", len(tried))
	}
}

// wrongType is a value that no field takes that has taken the other one.
func wrongType(value any) any {
	switch value.(type) {
	case string, float64:
		return map[string]any{}
	}
	return "wrong"
}

// eachObject calls f for each object of options in a handler, with its path. Names that a config chooses are * there.
func eachObject(value any, path string, f func(path string, object map[string]any)) {
	object, ok := value.(map[string]any)
	if !ok {
		return
	}
	chosen := strings.HasSuffix(path, "/rate_limits") || strings.HasSuffix(path, "/plans")
	if !chosen {
		f(path, object)
	}
	for name, inner := range object {
		if chosen {
			name = "*"
		}
		if !slices.Contains([]string{"match", "exempt", "block", "headers", "header_names", "storage"}, name) {
			eachObject(inner, path+"/"+name, f)
		}
	}
}
