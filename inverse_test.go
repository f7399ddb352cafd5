package caddyratelimit_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// draw draws configs.
type draw struct{ *rand.Rand }

func (d draw) oneOf(all ...any) any { return all[d.IntN(len(all))] }

// number draws a number within the bounds of an option. Small ones are as likely as large ones.
func (d draw) number(f *option.Field) float64 {
	read := func(text string, otherwise float64) float64 {
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return n
		}
		if length, err := caddy.ParseDuration(text); err == nil {
			return float64(length)
		}
		return otherwise
	}
	least, greatest := read(f.Least, 0), read(f.Greatest, 1e6)
	return min(greatest, least+math.Expm1(d.Float64()*math.Log1p(greatest-least)))
}

// duration draws one of whole milliseconds, in JSON as a text or in nanoseconds.
func (d draw) duration(f *option.Field) any {
	if f.Zero != "" && d.IntN(3) == 0 {
		return 0
	}
	length := time.Duration(d.number(f)).Round(time.Millisecond)
	return d.oneOf(int64(length), duration.Format(length), length.String())
}

// amounts are options with placeholders.
func (d draw) amount(f *option.Field) any {
	n := int64(d.number(f))
	return d.oneOf(n, n, "{http.request.header.A}", fmt.Sprintf("{http.request.header.A} %d", n))
}

// matchers draws sets of matchers.
func (d draw) matchers() (sets []any) {
	for range 1 + d.IntN(2) {
		sets = append(sets, d.oneOf(
			map[string]any{"path": []string{"/a", "/b c"}}, map[string]any{"client_ip": map[string]any{"ranges": []string{"192.0.2.0/24", "2001:db8::1"}}},
			map[string]any{"method": []string{"GET"}}))
	}
	return sets
}

// value draws a value of an option, in JSON.
func (d draw) value(f *option.Field) any {
	switch f.JSON {
	case "match", "exempt", "block":
		return d.matchers()
	case "key":
		return d.oneOf("{http.vars.client_ip}", "{http.request.header.A} \"b\" {http.vars.x}", `all "of" them`)
	case "timezone":
		return d.oneOf("Europe/Paris", "UTC", "Asia/Tokyo")
	case "algorithm":
		return d.oneOf("sliding_window_log", "sliding_window_counter", "token_bucket", "gcra", "leaky_bucket", "fixed_window", "concurrency")
	case "missing_key":
		return d.oneOf("share", "skip", "reject", "reject 403")
	case "default":
		return d.oneOf("a", "b", "reject", "reject 404")
	case "broken_off", "unknown":
		return d.oneOf("booked", "counted", "counted*2.5", int64(d.number(f)))
	case "status":
		return d.oneOf([]string{"401"}, []string{"5xx", "404"})
	case "match_header":
		return d.oneOf(map[string][]string{"X-Failed": {"*"}}, map[string][]string{"A": {"b c", "d"}, "B": {"*"}})
	case "header":
		return d.oneOf("X-Cost", "Tokens")
	case "json":
		return d.oneOf([]string{"usage.total"}, []string{"a|b.c", "d*4"})
	case "plan":
		return map[string]any{"of": "{http.request.header.B}", "plans": map[string]any{"a": d.object(config.Limit{}, 4), "b": map[string]any{"unlimited": true}}, "default": "a"}
	case "ban":
		return d.object(config.Ban{}, 1)
	case "charge":
		return d.object(config.Charge{}, 3)
	case "window":
		return d.oneOf("day", "week", "month", "year", d.duration(f), d.duration(f), d.duration(f))
	}
	t := f.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[config.Amount]():
		return d.amount(f)
	case t == reflect.TypeFor[caddy.Duration]():
		return d.duration(f)
	case f.Words != nil:
		return f.Words[d.IntN(len(f.Words))]
	case t.Kind() == reflect.Bool:
		return true
	case t.Kind() == reflect.Float64:
		return math.Round(d.number(f)*100) / 100
	}
	return int64(d.number(f))
}

// object draws one of some options of a struct.
func (d draw) object(of any, some int) map[string]any {
	object := make(map[string]any)
	for _, f := range option.Fields(reflect.TypeOf(of)) {
		needed := f.JSON == "max_events" || f.JSON == "window"
		if f.JSON != "-" && (needed || d.IntN(some) == 0) {
			object[f.JSON] = d.value(&f)
		}
	}
	for _, fits := range [][2]string{{"refill", "token_bucket"}, {"mode", "leaky_bucket"}, {"burst", "token_bucket"}, {"align", "fixed_window"}, {"lease", "concurrency"}} {
		if object[fits[0]] != nil && d.IntN(2) == 0 {
			object["algorithm"] = fits[1]
		}
	}
	if object["algorithm"] == "concurrency" {
		delete(object, "window")
	}
	return object
}

// caddyfileOf writes the options of a struct in JSON as lines of a Caddyfile.
func caddyfileOf(of any, object map[string]any) (lines []string) {
	for _, f := range option.Fields(reflect.TypeOf(of)) {
		if value, ok := object[f.JSON]; ok {
			lines = append(lines, linesOf(&f, value)...)
		}
	}
	return lines
}

// linesOf writes an option.
func linesOf(f *option.Field, value any) (lines []string) {
	block := func(head string, of any, object any) []string {
		return slices.Concat([]string{head + " {"}, caddyfileOf(of, object.(map[string]any)), []string{"}"})
	}
	switch f.JSON {
	case "charge":
		return block("charge", config.Charge{}, value)
	case "plan":
		plans := value.(map[string]any)
		lines = append(lines, "plan "+quotedToken(plans["of"].(string))+" {")
		all := plans["plans"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if plan := all[name].(map[string]any); plan["unlimited"] == true {
				lines = append(lines, name+" unlimited")
			} else {
				lines = append(lines, block(name, config.Limit{}, plan)...)
			}
		}
		return slices.Concat(lines, caddyfileOf(config.Plans{}, map[string]any{"default": plans["default"]}), []string{"}"})
	case "ban":
		b := value.(map[string]any)
		line := fmt.Sprintf("ban %s after %v refusals in %s", textOf(b["duration"]), b["after"], textOf(b["window"]))
		if b["up_to"] != nil {
			line += " up_to " + textOf(b["up_to"])
		}
		return []string{line}
	case "match", "exempt", "block":
		for _, set := range value.([]any) {
			for name, args := range set.(map[string]any) {
				if ranges, ok := args.(map[string]any); ok {
					args = ranges["ranges"]
				}
				lines = append(lines, f.Name+" "+name+quotedTokens(args.([]any)))
			}
		}
		return lines
	case "match_header":
		for name, values := range value.(map[string]any) {
			for _, v := range values.([]any) {
				lines = append(lines, f.Name+" "+name+" "+quotedToken(v.(string)))
			}
		}
		return lines
	case "max_events", "cost", "burst", "missing_key", "default":
		return []string{fmt.Sprintf("%s %v", f.Name, value)} // several arguments
	}
	if list, ok := value.([]any); ok {
		return []string{f.Name + quotedTokens(list)}
	}
	if _, number := value.(json.Number); number && (f.Type.String() == "config.Window" || strings.HasSuffix(f.Type.String(), "caddy.Duration")) {
		if value = textOf(value); value == "0s" && f.Zero != "" {
			value = f.Zero
		}
	}
	return []string{f.Name + " " + quotedToken(fmt.Sprint(value))}
}

func textOf(nanoseconds any) string {
	n, _ := nanoseconds.(json.Number).Int64()
	return duration.Format(time.Duration(n))
}

func quotedToken(text string) string {
	return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"`
}

func quotedTokens(list []any) (line string) {
	for _, text := range list {
		line += " " + quotedToken(text.(string))
	}
	return line
}

// readZone returns the JSON of a zone that is valid, after it was read.
func readZone(text []byte) ([]byte, error) {
	z := new(config.Zone)
	if err := json.Unmarshal(text, z); err != nil {
		return nil, err
	}
	checked := *z
	for _, raw := range []*caddyhttp.RawMatcherSets{&checked.MatcherSetsRaw, &checked.ExemptRaw, &checked.BlockRaw} {
		*raw = nil
	}
	if _, err := zone.New(&checked, zone.Place{Name: "z"}, new(stats.Counters)); err != nil {
		return nil, err
	}
	return json.Marshal(z)
}

// adaptZone writes the JSON of a zone as a Caddyfile, and adapts that.
func adaptZone(t *testing.T, text []byte) ([]byte, error) {
	t.Helper()
	var object map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		t.Fatal(err)
	}
	lines := strings.Join(caddyfileOf(config.Zone{}, object), "\n")
	adapted, _, err := caddytest.Adapt(":80 {\nrate_limit {\nzone z {\n" + lines + "\n}\n}\n}\n")
	if err != nil {
		return nil, fmt.Errorf("%w in\n%s", err, lines)
	}
	var found json.RawMessage
	_, rest, _ := strings.Cut(string(adapted), `"rate_limits":{"z":`)
	if err := json.NewDecoder(strings.NewReader(rest)).Decode(&found); err != nil {
		t.Fatal(err)
	}
	return found, nil
}

// TestInverse: a zone in JSON and the same zone as a Caddyfile are the same once they are loaded, and neither changes when it is
// read again. What one refuses the other refuses too.
func TestInverse(t *testing.T) {
	const want = 1000
	d, accepted := draw{rand.New(rand.NewPCG(1, 2))}, 0
	options := make(map[string]int)
	for tries := 0; accepted < want; tries++ {
		if tries > 100*want {
			t.Fatalf("only %d of %d configs are accepted", accepted, tries)
		}
		object := d.object(config.Zone{}, 8)
		drawn, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		read, refused := readZone(drawn)
		if refused != nil {
			if tries%10 == 0 {
				z := new(config.Zone)
				if json.Unmarshal(drawn, z) == nil {
					written, _ := json.Marshal(z)
					if _, err := adaptZone(t, written); err == nil {
						t.Errorf("the Caddyfile of %s is accepted, and JSON is not: %v", written, refused)
					}
				}
			}
			continue
		}
		accepted++
		for name := range object {
			options[name]++
		}
		again, err := readZone(read)
		if err != nil || string(again) != string(read) {
			t.Errorf("%s is read as\n%s and then as\n%s: %v", drawn, read, again, err)
		}
		for range 2 {
			adapted, err := adaptZone(t, read)
			if err == nil {
				adapted, err = readZone(adapted)
			}
			if err != nil || string(adapted) != string(read) {
				t.Fatalf("%s is in a Caddyfile\n%s: %v", read, adapted, err)
			}
			read = adapted
		}
	}
	for _, f := range option.Fields(reflect.TypeFor[config.Zone]()) {
		if f.JSON != "-" && options[f.JSON] < 5 {
			t.Errorf("%s is in %d configs", f.JSON, options[f.JSON])
		}
	}
}
