package usage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"testing"
)

func mustParse(t testing.TB, text string) *Fields {
	t.Helper()
	f, err := ParseFields(strings.Fields(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestOddAnswers: bodies that are not as they should be cost what the docs say, or nothing is known.
func TestOddAnswers(t *testing.T) {
	const total, sse, lines = "usage.total", "text/event-stream", "application/x-ndjson"
	deepest := strings.Repeat(`{"a":[`, 10_000) + strings.Repeat(`]}`, 10_000)
	for _, c := range []struct{ name, fields, contentType, body, want string }{
		{"a number", total, "", `{"usage":{"total":7}}`, "7"},
		{"fraction", total, "", `{"usage":{"total":7.000001}}`, "8"},
		{"exponent", total, "", `{"usage":{"total":1.5E+3}}`, "1500"},
		{"huge exponent", total, "", `{"usage":{"total":1e999999999999999999999}}`, "invalid"},
		{"tiny exponent", total, "", `{"usage":{"total":1e-999999999999999999999}}`, "invalid"},
		{"negative", total, "", `{"usage":{"total":-7}}`, "invalid"},
		{"negative and then good", total, "", `{"usage":{"total":-7,"total":9}}`, "9"},
		{"greatest", total, "", `{"usage":{"total":1000000000000}}`, "1000000000000"},
		{"above the greatest", total, "", `{"usage":{"total":1000000000001}}`, "invalid"},
		{"400 digits", total, "", `{"usage":{"total":` + strings.Repeat("9", 400) + `}}`, "invalid"},
		{"string", total, "", `{"usage":{"total":"7"}}`, "invalid"},
		{"null", total, "", `{"usage":{"total":null}}`, "unknown"},
		{"array", total, "", `{"usage":{"total":[5]}}`, "invalid"},
		{"usage is null", total, "", `{"usage":null}`, "unknown"},
		{"duplicate key", total, "", `{"usage":{"total":5,"total":6}}`, "6"},
		{"duplicate object", total, "", `{"usage":{"total":5},"usage":{"total":4}}`, "4"},
		{"escaped name", total, "", `{"us\u0061ge":{"\u0074ot\u0061l":5}}`, "5"},
		{"other case", total, "", `{"Usage":{"total":5}}`, "unknown"},
		{"in a string", total, "", `{"x":"\"usage\":{\"total\":5}\\","y":"{\"usage\":{\"total\":5}}"}`, "unknown"},
		{"long name", total, "", `{"` + strings.Repeat("usage", 1000) + `":{"total":5}}`, "unknown"},
		{"surrogates", "😀.x", "", `{"\ud83d\ude00":{"x":5}}`, "5"},
		{"invalid UTF-8", total, "", "{\"x\":\"\xff\xfe\",\"\xc3\":1,\"usage\":{\"total\":5}}", "5"},
		{"deep", total, "", `{"x":` + deepest + `,"usage":{"total":5}}`, "5"},
		{"cut off", total, "", `{"usage":{"total":5`, "unknown"},
		{"cut off later", total, "", `{"usage":{"total":5}`, "5"},
		{"array of events", total, "", `[{"usage":{"total":5}},{"usage":{"total":6}}]`, "6"},
		{"lines", total, lines, "{\"usage\":{\"total\":5}}\n{\"usage\":{\"total\":6}}\n", "6"},
		{"weights", "a b*4 c*0.1 d*-0.5", "", `{"a":1,"b":2,"c":3,"d":4}`, "8"}, // 7.3
		{"discount above the rest", "a b*-1", "", `{"a":1,"b":2}`, "invalid"},
		{"sum above the greatest", "a b*1000", "", `{"a":1,"b":1e12}`, "invalid"},
		{"either", "a|b.c", "", `{"a":1,"b":{"c":2}}`, "2"},
		{"events", total, sse, "data: {\"usage\":{\"total\":5}}\n\ndata: {\"usage\":{\"total\":6}}\n\n", "6"},
		{"event of several lines", total, sse, "data: {\"usage\":\ndata: {\"total\":\ndata:5}}\n\n", "5"},
		{"comment and other fields", total, sse, ": {\"usage\":{\"total\":1}}\nid: 1\nevent: data\nretry: 1\ndat: {\"usage\":{\"total\":2}}\ndatas: {\"usage\":{\"total\":3}}\n\n", "unknown"},
		{"fault in one event", total, sse, "data: {\"usage\":{]\n\ndata: {\"usage\":{\"total\":6}}\n\n", "6"},
		{"text is no JSON", total, "text/plain", `{"usage":{"total":5}}`, "unread"},
		{"odd type", total, "Application/JSON ;charset=utf-8;charset=utf-8; x", `{"usage":{"total":5}}`, "5"},
		{"byte order mark", total, "", byteOrderMark + `{"usage":{"total":5}}`, "5"},
		{"end and more", total, sse, "data: [DONE]\n\ndata: {\"usage\":{\"total\":5}}\n\n", "5"},
		{"comments and types between lines of data", total, sse, "data: {\"usage\":\n: {\"total\":6}}\nevent: usage\ndata: {\"total\":5}}\n\n", "5"},
	} {
		contentType := c.contentType
		if contentType == "" {
			contentType = "application/json"
		}
		f := mustParse(t, c.fields)
		if got := costOf(f, contentType, c.body); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if got := costOf(f, contentType, strings.Split(c.body, "")...); got != c.want {
			t.Errorf("%s, by bytes: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestFieldsThatDoNotParse: errors show the field and the fix.
func TestFieldsThatDoNotParse(t *testing.T) {
	for text, want := range map[string]string{
		"usage..x":                    `"usage..x": "usage..x" is not a path: write names with dots between, such as usage.total_tokens`,
		"$.usage.x":                   `"$.usage.x": a path is just names with dots between, such as usage.total_tokens, without $, brackets or quotes`,
		"choices[0].x":                `"choices[0].x": a path is just names with dots between, such as usage.total_tokens, without $, brackets or quotes`,
		"a*":                          `"a*": the weight "" must be a number such as 4, 0.1 or -0.5, of at most 1000 and with at most 6 decimal places`,
		"a*0":                         `"a*0": the weight "0" must be a number such as 4, 0.1 or -0.5, of at most 1000 and with at most 6 decimal places`,
		"a*1001":                      `"a*1001": the weight "1001" must be a number such as 4, 0.1 or -0.5, of at most 1000 and with at most 6 decimal places`,
		"a*0.0000001":                 `"a*0.0000001": the weight "0.0000001" must be a number such as 4, 0.1 or -0.5, of at most 1000 and with at most 6 decimal places`,
		"a b|a":                       `"b|a": the path a is there twice`,
		"a.b.c.d.e.f.g.h.i":           `"a.b.c.d.e.f.g.h.i": a path has at most 8 names of at most 64 bytes`,
		strings.Repeat("a ", 0) + "|": `"|": "" is not a path: write names with dots between, such as usage.total_tokens`,
	} {
		if _, err := ParseFields(strings.Fields(text)); fmt.Sprint(err) != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	var many []string
	for i := range MaxFields + 1 {
		many = append(many, "a"+strconv.Itoa(i))
	}
	if _, err := ParseFields(many); fmt.Sprint(err) != "at most 32 paths make up a cost, got 33" {
		t.Error(err)
	}
}

// reference finds the last number of each path in a valid text, by encoding/json. It knows the text
// whole and takes its time.
func reference(d *json.Decoder, at []string, found func(path string, value json.Token)) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	found(strings.Join(at, "\x00"), t)
	switch t {
	case json.Delim('{'):
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return err
			}
			if err := reference(d, append(at, name.(string)), found); err != nil {
				return err
			}
		}
	case json.Delim('['):
		for d.More() {
			in := append(at, "\x01") // no path leads into it
			if len(at) == 0 {
				in = at
			}
			if err := reference(d, in, found); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = d.Token()
	return err
}

// referenceNumber is the number of a path, by exact fractions.
func referenceNumber(text string) (*big.Rat, bool) {
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if len(text) > 48 || len(exponent) > 4 {
		return nil, false
	}
	n, ok := new(big.Rat).SetString(text)
	return n, ok && n.Sign() >= 0 && n.Cmp(big.NewRat(MaxCost, 1)) <= 0
}

// FuzzScanner compares the scanner with encoding/json: in a valid text it finds the same numbers,
// wherever the text is cut, and as an event of a stream too. Of any text it finds the same in any
// pieces.
func FuzzScanner(f *testing.F) {
	fields := mustParse(f, "a.b a.c.d*4 e|a.e*0.1 f*-0.5")
	for _, seed := range []string{
		`{"a":{"b":12,"c":{"d":3.25}},"e":1e3}`, `{"a":{"b":"x\\\"\u00e9","e":-1},"f":0.5,"\u0061":{"b":7}}`, `[{"a":{"b":1}},{"a":{"b":2}}]`,
		`{"x":[[{"a":{"b":5}}]],"a":{"b":null,"c":[1,2,{"d":4}]}}`, `{"a":`, "data: {\"a\":{\"b\":1}}\n\n", `{"a":{"b":1e-400,"c":{"d":99999999999999999999}}}`, `{"\ud83d\ude00\ud83d":1}`, `{"a":{"b":true}} {"e":5}`,
		`{"a":{"b":0.00000000000000000000001},"e":12345678901234567890123e-12}`, "{\"a\":{\"b\":\r5}}",
	} {
		f.Add([]byte(seed), uint(7))
	}
	f.Fuzz(func(t *testing.T, text []byte, cut uint) {
		i := int(cut % uint(len(text)+1))
		for _, contentType := range []string{"application/json", "text/event-stream"} {
			whole := found(fields, contentType, string(text))
			if got := found(fields, contentType, string(text[:i]), string(text[i:])); got != whole {
				t.Fatalf("%s cut at %d: %s, whole %s", contentType, i, got, whole)
			}
			if got := found(fields, contentType, strings.Split(string(text), "")...); got != whole {
				t.Fatalf("%s by bytes: %s, whole %s", contentType, got, whole)
			}
		}
		whole := costOf(fields, "application/json", string(text))
		if !json.Valid(text) {
			return
		}
		event := "data:" + strings.ReplaceAll(strings.ReplaceAll(string(text), "\r", "\n"), "\n", "\r\ndata: ") + "\n\n"
		if got := costOf(fields, "text/event-stream", event); got != whole {
			t.Fatalf("as an event: %s, whole %s", got, whole)
		}
		if want := referenceCost(t, text); whole != want {
			t.Fatalf("%s, want %s", whole, want)
		}
	})
}

// found is all that is read of a body in pieces.
func found(f *Fields, contentType string, pieces ...string) string {
	r, _ := NewReader(f, contentType, "")
	for _, p := range pieces {
		_, _ = r.Write([]byte(p))
	}
	_ = r.Close()
	return fmt.Sprint(shownCost(r.Cost()), " in ", r.Events(), " events, done: ", r.Done())
}

// referenceCost is the cost of a valid text by the fields of FuzzScanner.
func referenceCost(t *testing.T, text []byte) string {
	terms := map[string]int{"a\x00b": 0, "a\x00c\x00d": 1, "e": 2, "a\x00e": 2, "f": 3}
	weights := []*big.Rat{big.NewRat(1, 1), big.NewRat(4, 1), big.NewRat(1, 10), big.NewRat(-1, 2)}
	numbers, invalid := make([]*big.Rat, 4), make([]bool, 4)
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err := reference(d, nil, func(path string, value json.Token) {
		term, ok := terms[path]
		if !ok || value == nil {
			return
		}
		number, isNumber := value.(json.Number)
		n, good := referenceNumber(string(number))
		if invalid[term] = !isNumber || !good; !invalid[term] {
			numbers[term] = n
		}
	})
	if err != nil && err != io.EOF {
		t.Skip(err) // deeper than encoding/json goes
	}
	sum, any := new(big.Rat), false
	for i, n := range numbers {
		if invalid[i] {
			return "invalid"
		}
		if n != nil {
			any = true
			sum.Add(sum, new(big.Rat).Mul(n, weights[i]))
		}
	}
	if !any {
		return "unknown"
	}
	up := new(big.Int).Div(new(big.Int).Sub(new(big.Int).Add(sum.Num(), sum.Denom()), big.NewInt(1)), sum.Denom())
	if up.Sign() < 0 || up.Cmp(big.NewInt(MaxCost)) > 0 {
		return "invalid"
	}
	return up.String()
}

// TestOneLine: the first line of a stream counts as an event, so that who breaks it off there pays for it. A single JSON text is none.
func TestOneLine(t *testing.T) {
	for contentType, want := range map[string]int64{"application/json": 0, "application/x-ndjson": 1, "application/jsonl; charset=utf-8": 1} {
		r, err := NewReader(mustParse(t, "usage.total"), contentType)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = r.Write([]byte("{\"response\":\"a\"}\n"))
		if err := r.Close(); err != nil || r.Events() != want {
			t.Errorf("%s: %d events, %v, want %d", contentType, r.Events(), err, want)
		}
	}
}
