package caddyratelimit_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit"
	"github.com/seed-161337e5/caddyratelimit/adaptive"
	"github.com/seed-161337e5/caddyratelimit/backend"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
)

// block is a struct of options, and where it is in a config.
type block struct {
	id    string
	of    any
	lines string // the Caddyfile around a line, which is ?; "; " ends a line
	path  string // of the block in the JSON of the handler
}

const aPlan = "rate_limit {; zone z {; key {header.A}; plan {header.A} {; "

// blocks are all structs of options.
var blocks = []block{
	{"rate_limit", caddyratelimit.Handler{}, "rate_limit {; ?; zone z {; rate 10/1m; }; }", ""},
	{"zone", config.Zone{}, "rate_limit {; zone z {; key {header.A}; rate 10/1m; ?; }; }", "rate_limits z"},
	{"plans", config.Plans{}, aPlan + "a unlimited; ?; }; }; }", "rate_limits z plan"},
	{"plan", config.Plan{}, aPlan + "a {; rate 10/1m; ?; }; default a; }; }; }", "rate_limits z plan plans a"},
	{"charge", config.Charge{}, "rate_limit {; zone z {; rate 10/1m; charge {; ?; }; }; }", "rate_limits z charge"},
	{"ban", config.Ban{}, "rate_limit {; zone z {; key {header.A}; rate 10/1m; ban 1s after 3 refusals in 1m; }; }", "rate_limits z ban"},
	{"memory", backend.MemoryStore{}, "rate_limit {; store memory {; ?; }; zone z {; rate 10/1m; }; }", "store"},
	{"redis", backend.RedisStore{}, "rate_limit {; store redis {; ?; }; zone z {; rate 10/1m; }; }", "store"},
	{"tls", redisstore.TLS{}, "rate_limit {; store redis {; tls {; ?; }; }; zone z {; rate 10/1m; }; }", "store tls"},
	{"adaptive", adaptive.Handler{}, "adaptive_concurrency z {; ?; }", ""},
}

// within are the limits that options need instead of 10/1m.
var within = map[string]string{
	"events": "window 1m; algorithm fixed_window", "window": "events 10; algorithm fixed_window", "rate": "",
	"burst": "algorithm token_bucket 1000000000000/1m", "refill": "algorithm token_bucket 10/1m", "mode": "algorithm leaky_bucket 10/1m",
	"align": "algorithm fixed_window 10/1m", "timezone": "rate 10/day", "lease": "algorithm concurrency 5", "lend": "rate 10/1h",
}

// frame returns the Caddyfile around an option.
func (b *block) frame(f *option.Field) string {
	text := b.lines
	if limit, ok := within[f.Name]; ok && (b.id == "zone" || b.id == "plan") {
		text = strings.Replace(text, "rate 10/1m", limit, 1)
	}
	switch id := b.id + "." + f.Name; id {
	case "zone.key":
		return strings.Replace(text, "key {header.A}; ", "", 1)
	case "zone.ipv4_prefix", "zone.ipv6_prefix":
		return strings.Replace(text, "{header.A}", "{remote_host}", 1)
	case "plans.-":
		return strings.Replace(text, "?", "default a; ?", 1)
	case "zone.lend":
		return strings.Replace(text, "rate_limit {; ", "rate_limit {; store redis; ", 1)
	case "charge.broken_off", "charge.unknown":
		return strings.Replace(text, "?", "json a; ?", 1)
	case "redis.username":
		return strings.Replace(text, "?", "password x; ?", 1)
	case "redis.sentinel_username":
		return strings.Replace(text, "?", "master_name x; sentinel_password x; ?", 1)
	case "redis.sentinel_password":
		return strings.Replace(text, "?", "master_name x; ?", 1)
	case "adaptive.ipv4_prefix", "adaptive.ipv6_prefix":
		return strings.Replace(text, "?", "key {remote_host}; ?", 1)
	}
	return text
}

// samples are values of options whose tags do not say one.
var samples = map[string]string{
	"rate_limit.zone": "y {; rate 1/1m; }", "rate_limit.store": "memory", "rate_limit.header_name": "RateLimit X-Quota", "rate_limit.distributed": "{; }", "rate_limit.storage": "redis", "rate_limit.sweep_interval": "1m",
	"zone.match": "path /a", "zone.key": "{header.B}", "rate": "5/1m", "algorithm": "fixed_window", "timezone": "Europe/Paris", "zone.missing_key": "reject 403",
	"zone.charge": "{; status 401; }", "zone.plan": "{header.A} {; a unlimited; default a; }", "zone.exempt": "192.0.2.1", "zone.block": "192.0.2.0/24",
	"zone.ban": "1m after 3 refusals in 1m", "plans.default": "a", "charge.status": "401 5xx", "charge.match_header": "A b", "charge.json": "a b*4",
	"redis.address": "127.0.0.1:1", "redis.url": "redis://127.0.0.1:1/0", "redis.mode": "standalone", "redis.tls": "",
	"adaptive.priority": "{header.A} a b", "adaptive.key": "{header.A}",
}

// sample returns a value of an option in a Caddyfile.
func (b *block) sample(f *option.Field) string {
	if text, ok := samples[b.id+"."+f.Name]; ok {
		return text
	}
	switch {
	case strings.HasSuffix(f.Type.String(), "bool") || strings.HasPrefix(f.Syntax, "["):
		return ""
	case f.Words != nil:
		return f.Words[0]
	}
	return cmp.Or(samples[f.Name], f.Least, f.Greatest, "x")
}

// tableTest tries options.
type tableTest struct {
	*testing.T
	ctx   caddy.Context
	tried int
}

// adapt returns the handler of a Caddyfile.
func (t *tableTest) adapt(lines string) (map[string]any, error) {
	t.tried++
	text, _, err := caddytest.Adapt(":80 {\n" + strings.ReplaceAll(lines, "; ", "\n") + "\n}\n")
	if err != nil {
		return nil, err
	}
	var c struct {
		Apps struct {
			HTTP struct {
				Servers map[string]struct {
					Routes []struct{ Handle []map[string]any }
				}
			}
		}
	}
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c.Apps.HTTP.Servers["srv0"].Routes[0].Handle[0], nil
}

// load loads a handler into the config of the test, which remembers the names of zones.
func (t *tableTest) load(h map[string]any) error {
	t.tried++
	ctx, name := t.ctx, "z"+strconv.Itoa(t.tried)
	if zones, ok := h["rate_limits"].(map[string]any); ok && zones["z"] != nil {
		zones[name] = zones["z"]
		delete(zones, "z")
	} else if h["name"] == "z" {
		h["name"] = name
	}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), `"max_keys"`) { // of which a config has one
		ctx = caddytest.Config(t)
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(string(text[strings.Index(string(text), `"handler":"`):]), `"handler":"`), `"`)
	delete(h, "handler")
	if text, err = json.Marshal(h); err != nil {
		t.Fatal(err)
	}
	loaded, err := caddytest.TryLoad(ctx, kind+" "+string(text))
	if err == nil {
		caddytest.CleanUp(t, loaded)
	}
	return err
}

// line loads a Caddyfile with a line.
func (t *tableTest) line(frame, line string) error {
	h, err := t.adapt(strings.Replace(frame, "?", line, 1))
	if err != nil {
		return err
	}
	return t.load(h)
}

// field loads the JSON of a Caddyfile, with another value in a field.
func (t *tableTest) field(b *block, f *option.Field, name, value string) error {
	return t.load(t.handler(b, f, name, value))
}

// handler is the JSON of a Caddyfile, with another value in a field.
func (t *tableTest) handler(b *block, f *option.Field, name, value string) map[string]any {
	line := ""
	if f.Name != "-" {
		line = strings.TrimSpace(f.Name + " " + b.sample(f))
	}
	h, err := t.adapt(strings.Replace(b.frame(f), "?", line, 1))
	if err != nil {
		t.Fatalf("%s.%s: the frame is wrong: %v", b.id, f.JSON, err)
	}
	object := b.within(h)
	delete(object, f.JSON)
	object[name] = json.RawMessage(value)
	return h
}

const secret = "s3cr3t"

// refused expects an error that names an option, or the value that is wrong in it.
func (t *tableTest) refused(b *block, what, name string, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: %s is accepted", b.id, what)
		return
	}
	said := err.Error()
	for _, part := range append(parts, name) {
		if !strings.Contains(said, part) {
			t.Errorf("%s: %s: %q is missing in the error: %s", b.id, what, part, said)
		}
	}
	t.hides(b, what, err)
}

// hides expects no secret in an error.
func (t *tableTest) hides(b *block, what string, err error) {
	t.Helper()
	if strings.Contains(fmt.Sprint(err), secret) {
		t.Errorf("%s: %s: the error has the secret: %v", b.id, what, err)
	}
}

func (t *tableTest) accepted(b *block, what string, err error) {
	t.Helper()
	if err != nil && !strings.Contains(err.Error(), "mode sentinel needs master_name") {
		t.Errorf("%s: %s: %v", b.id, what, err)
	}
}

// bounds tries an option at its bounds, and just beyond.
func (t *tableTest) bounds(b *block, f *option.Field) {
	for bound, sign := range map[string]int64{f.Least: -1, f.Greatest: 1} {
		if bound == "" {
			continue
		}
		outside := beyond(t, bound, f.Type, sign)
		if f.Name != "-" && b.id != "ban" {
			t.same(b, f, f.Name+" "+bound, quoted(bound))
			t.accepted(b, f.Name+" "+bound, t.line(b.frame(f), f.Name+" "+bound))
			t.refused(b, f.Name+" "+outside, f.Name, t.line(b.frame(f), f.Name+" "+outside), f.Span(), outside)
		}
		t.accepted(b, f.JSON+": "+bound, t.field(b, f, f.JSON, quoted(bound)))
		t.refused(b, f.JSON+": "+outside, f.JSON, t.field(b, f, f.JSON, quoted(outside)), f.Span(), outside)
	}
}

// beyond is a number that is just below or above a bound.
func beyond(t testing.TB, bound string, of reflect.Type, sign int64) string {
	t.Helper()
	if n, err := strconv.ParseInt(bound, 10, 64); err == nil && !strings.Contains(of.String(), "float") {
		return strconv.FormatInt(n+sign, 10)
	}
	if n, err := strconv.ParseFloat(bound, 64); err == nil {
		return fmt.Sprint(n + float64(sign)*max(n, 1)/1000)
	}
	d, err := caddy.ParseDuration(bound)
	if err != nil {
		t.Fatal(err)
	}
	return (d + time.Duration(sign)*time.Microsecond).String()
}

// quoted is JSON of a number or a text.
func quoted(text string) string {
	if json.Valid([]byte(text)) {
		return text
	}
	return strconv.Quote(text)
}

// What options accept that others do not: no value, several of them, any text, and one that is empty.
var (
	bare    = words("rate_limit.log_key rate_limit.disable_metrics rate_limit.distributed rate_limit.storage zone.overrides zone.lend redis.tls tls.insecure_skip_verify")
	several = words("rate_limit.distributed rate_limit.storage adaptive.priority redis.address charge.json")
	anyText = words(`rate_limit.distributed rate_limit.storage zone.key adaptive.key charge.header charge.json tls.server_name tls.ca tls.cert tls.key redis.address redis.username redis.password
		redis.sentinel_username redis.sentinel_password redis.key_prefix redis.master_name`)
	emptyText = words("rate_limit.distributed rate_limit.storage")
)

func words(text string) (all []string) { return strings.Fields(text) }

// inCaddyfile tries values that are no numbers.
func (t *tableTest) inCaddyfile(b *block, f *option.Field) {
	frame, id, line := b.frame(f), b.id+"."+f.Name, strings.TrimSpace(f.Name+" "+b.sample(f))
	try := func(value string, fine bool, parts ...string) {
		t.Helper()
		what := f.Name + " " + value
		switch err := t.line(frame, what); {
		case !fine:
			t.refused(b, what, f.Name, err, parts...)
		default:
			t.hides(b, what, err)
		}
	}
	t.same(b, f, line, "")
	for _, word := range f.Words {
		t.accepted(b, f.Name+" "+word, t.line(strings.Replace(frame, "mode cluster", "", 1), f.Name+" "+word))
		if f.Type.Kind() != reflect.Slice {
			t.same(b, f, f.Name+" "+word, strconv.Quote(word))
		}
	}
	try("", slices.Contains(bare, id))
	try(`""`, slices.Contains(emptyText, id))
	try(secretly(f, "?", 1), slices.Contains(anyText, id), f.Words...)
	try(secretly(f, "?", 7), slices.Contains(several, id))
	kind := option.Pointed(f.Type).Kind()
	try("{x}", f.Words == nil && (kind == reflect.String || kind == reflect.Slice || kind == reflect.Struct || kind == reflect.Map))
	switch _, err := t.adapt(strings.Replace(frame, "?", line+"; "+line, 1)); {
	case !f.Repeats:
		t.refused(b, "twice "+line, f.Name, err, "already specified")
	case err != nil && !strings.Contains(err.Error(), f.Name+" already specified: "):
		t.Errorf("%s: twice %s: %v", b.id, line, err)
	}
	if b.id == "plans" { // it is the name of a plan
		return
	}
	misspelled := f.Name + "x"
	parts := []string{"unknown option "}
	if len(f.Name) > 3 {
		parts = append(parts, `did you mean "`+f.Name+`"?`)
	}
	t.refused(b, misspelled, misspelled, t.line(frame, misspelled+" "+secret), parts...)
}

// secretly returns a wrong value, which is a secret where it may be one.
func secretly(f *option.Field, value string, times int) string {
	switch {
	case f.Secret || f.Name == "tls":
		value = secret
	case f.Name == "address" || f.Name == "store":
		value = "redis://user:" + secret + "@localhost"
	}
	return strings.TrimSpace(strings.Repeat(value+" ", times))
}

// inJSON tries values of other types.
func (t *tableTest) inJSON(b *block, f *option.Field) {
	for _, word := range f.Words {
		value := strconv.Quote(word)
		if f.Type.Kind() == reflect.Slice {
			value = "[" + value + "]"
		}
		t.accepted(b, f.JSON+": "+value, t.field(b, f, f.JSON, value))
	}
	fits := map[reflect.Kind]string{reflect.Slice: "[]", reflect.Map: "{}", reflect.Struct: "{}", reflect.Bool: "true", reflect.String: `"?"`}
	kind := option.Pointed(f.Type)
	_, isValue := reflect.New(kind).Interface().(option.Value)
	for _, value := range []string{"[]", "{}", "true", "12.5", `"?"`, `["?"]`, `[12]`, `""`, `"{x}"`, `"` + secretly(f, "?", 1) + `"`, "null", "-1"} {
		err := t.field(b, f, f.JSON, value)
		what := f.JSON + ": " + value
		number := value == "12.5" || value == "-1"
		wrong := value[0] != '"' && fits[kind.Kind()] != value && !number && value != "null" && (kind.Kind() != reflect.Slice || value[0] != '[') ||
			number && (kind.Kind() == reflect.String || kind.Kind() == reflect.Bool || kind.Kind() == reflect.Map)
		if isValue && kind.Kind() == reflect.Struct {
			wrong = value == "[]" || value == "true" || value == `["?"]`
		}
		switch {
		case f.JSON == "distributed" || f.JSON == "storage" || f.JSON == "store":
			t.hides(b, what, err)
		case wrong:
			t.refused(b, what, f.JSON, err)
		case err != nil:
			t.refused(b, what, f.JSON, err)
		}
	}
	twice := fmt.Sprintf(`{%q: null, %[1]q: null}`, f.JSON)
	t.refused(b, twice, f.JSON, option.JSON([]byte(twice), reflect.New(reflect.TypeOf(b.of)).Interface()), "twice")
	misspelled, parts := f.JSON+"x", []string{"unknown option "}
	if len(f.JSON) > 3 {
		parts = append(parts, `did you mean "`+f.JSON+`"?`)
	}
	t.refused(b, misspelled, misspelled, t.field(b, f, misspelled, `"`+secret+`"`), parts...)
}

// TestTable: each option at its bounds and just beyond, of other types, misspelled, twice, empty, and with too many values is
// accepted, or refused with an error that names it and what it can be. No error has a secret.
func TestTable(t *testing.T) {
	test := &tableTest{T: t, ctx: caddytest.Config(t)}
	for i := range blocks {
		b := &blocks[i]
		for _, f := range option.Fields(reflect.TypeOf(b.of)) {
			test.bounds(b, &f)
			if f.Name != "-" && b.id != "ban" {
				test.inCaddyfile(b, &f)
			}
			if f.JSON != "-" {
				test.inJSON(b, &f)
			}
		}
	}
	t.Logf("tried %d", test.tried)
	if test.tried < 3500 {
		t.Errorf("tried only %d configs", test.tried)
	}
	known := words(`algorithm align ban block burst charge cost enforce events exempt headers ipv4_prefix ipv6_prefix key lease lend match max_wait
		missing_key mode on_store_error overrides plan rate refill timezone window`)
	if zone := option.Names(config.Zone{}); !slices.Equal(zone, known) || len(zone) > 28 {
		t.Errorf("a zone has %d options: %q", len(zone), zone)
	}
}
