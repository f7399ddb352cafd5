package usage

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/textproto"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

// recorded is an answer of a provider, and what it costs.
type recorded struct {
	contentType, cost, events string
	fields                    *Fields
	body                      string
}

// recordedAnswers reads the answers of testdata: fields as in a header, an empty line, and the body.
func recordedAnswers(t testing.TB) map[string]recorded {
	t.Helper()
	answers := golden.Cases(t, "testdata/answers.txtar")
	if len(answers) < 15 {
		t.Fatalf("only %d answers", len(answers))
	}
	all := make(map[string]recorded)
	for _, answer := range answers {
		head, body, _ := strings.Cut(answer.Text, "\n\n")
		header, err := textproto.NewReader(bufio.NewReader(strings.NewReader(head + "\n\n"))).ReadMIMEHeader()
		if err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
		fields, err := ParseFields(strings.Fields(header.Get("Fields")))
		if err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
		all[answer.Name] = recorded{
			contentType: header.Get("Content-Type"), cost: header.Get("Cost"), events: header.Get("Events"), fields: fields, body: body,
		}
	}
	return all
}

// costOf reads a body in pieces.
func costOf(f *Fields, contentType string, pieces ...string) string {
	r, _ := NewReader(f, contentType, "")
	if r == nil {
		return "unread"
	}
	for _, p := range pieces {
		_, _ = r.Write([]byte(p))
	}
	_ = r.Close()
	return shownCost(r.Cost())
}

func shownCost(n int64, found, valid bool) string {
	switch {
	case !valid:
		return "invalid"
	case !found:
		return "unknown"
	}
	return fmt.Sprint(n)
}

// TestAnswers: the answers of providers have their cost, wherever they are cut into pieces, and
// whatever line ends a stream has.
func TestAnswers(t *testing.T) {
	for name, a := range recordedAnswers(t) {
		bodies := []string{a.body}
		if strings.HasPrefix(a.contentType, "text/event-stream") {
			bodies = append(bodies, strings.ReplaceAll(a.body, "\n", "\r\n"), strings.ReplaceAll(a.body, "\n", "\r"), byteOrderMark+": hello\n\n"+a.body,
				strings.ReplaceAll(a.body, "data: {", "data:{"), strings.ReplaceAll(a.body, `"usage"`, "\ndata: \"usage\""))
		}
		for v, body := range bodies {
			check := func(how string, pieces ...string) {
				r, _ := NewReader(a.fields, a.contentType, "")
				for _, p := range pieces {
					_, _ = r.Write([]byte(p))
				}
				_ = r.Close()
				if got := shownCost(r.Cost()); got != a.cost {
					t.Fatalf("%s, form %d, %s: cost %s, want %s", name, v, how, got, a.cost)
				}
				if got := fmt.Sprint(r.Events()); a.events != "" && got != a.events {
					t.Fatalf("%s, form %d, %s: %s events, want %s", name, v, how, got, a.events)
				}
			}
			check("whole", body)
			check("by bytes", strings.Split(body, "")...)
			step := 1
			if v > 0 && !deep.Run() {
				step = 17
			}
			for i := 0; i < len(body); i += step {
				check(fmt.Sprintf("cut at %d", i), body[:i], body[i:])
			}
		}
	}
}

// encoded returns a text in a content coding.
func encoded(t testing.TB, coding, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&b)
	default:
		return []byte(text)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestCompressedAnswers: answers that the upstream compresses have the same cost, wherever they are cut
// into pieces.
func TestCompressedAnswers(t *testing.T) {
	for name, a := range recordedAnswers(t) {
		for _, coding := range []string{"gzip", "x-gzip"} {
			body := encoded(t, coding, a.body)
			for cut := 0; cut <= len(body); cut += 1 + len(body)/deep.Steps(10, 1000) {
				r, err := NewReader(a.fields, a.contentType, strings.ToUpper(coding))
				if err != nil {
					t.Fatal(err)
				}
				_, _ = r.Write(body[:cut])
				_, _ = r.Write(body[cut:])
				if err := r.Close(); err != nil {
					t.Fatalf("%s, %s: %v", name, coding, err)
				}
				if got := shownCost(r.Cost()); got != a.cost {
					t.Errorf("%s, %s, cut at %d: cost %s, want %s", name, coding, cut, got, a.cost)
				}
			}
		}
	}
}

// TestUndecodableAnswers: what cannot be decoded, or only with too much work, is an error, and what was cut
// off is not.
func TestUndecodableAnswers(t *testing.T) {
	f := mustParse(t, "usage.total")
	if r, err := NewReader(f, "text/html", "br"); r != nil || err != nil {
		t.Errorf("text/html: %v, %v", r, err)
	}
	for _, coding := range []string{"br", "deflate", "zstd", "gzip, gzip", "gzip, br"} {
		if _, err := NewReader(f, "application/json", coding); err == nil {
			t.Errorf("%s: no error", coding)
		}
	}
	for _, codings := range [][]string{{}, {""}, {"identity"}, {"identity, "}, {" GZIP "}, {"identity", "x-gzip"}} {
		r, err := NewReader(f, "application/json", codings...)
		if err != nil {
			t.Fatalf("%q: %v", codings, err)
		}
		_ = r.Close()
	}
	if _, err := NewReader(f, "application/json", "identity", "br"); err == nil {
		t.Error("br in a second line: no error")
	}
	good := `{"usage":{"total":5},"x":"` + strings.Repeat("x", 1000) + `"}`
	const most = 1 << 20
	bomb := `{"x":"` + strings.Repeat("x", most) + `","usage":{"total":5}}`
	{
		const coding = "gzip"
		for _, c := range []struct {
			name string
			body []byte
			want bool
		}{
			{"nothing", nil, true},
			{"whole", encoded(t, coding, good), true},
			{"cut off", encoded(t, coding, good)[:40], true},
			{"plain", []byte(good), false},
			{"bomb", encoded(t, coding, bomb), false},
		} {
			r := newReader(f, texts, true, most)
			for piece := range bytes.Lines(c.body) {
				_, _ = r.Write(piece)
			}
			if err := r.Close(); (err == nil) != c.want {
				t.Errorf("%s, %s: %v", coding, c.name, err)
			}
		}
	}
}

// TestDecoderMemory: a response keeps less than 64 KiB, whatever it decodes to.
func TestDecoderMemory(t *testing.T) {
	const readers, most = 40, 64 << 10
	f := mustParse(t, "usage.total")
	random := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for text.Len() < 64<<10 {
		fmt.Fprintf(&text, "data: {\"x\":%d,\"y\":\"%x\"}\n\n", random.IntN(1000), random.Uint64())
	}
	for _, coding := range []string{"identity", "gzip"} {
		body := encoded(t, coding, text.String())
		var before, after runtime.MemStats
		for range 2 { // which empties pools
			runtime.GC()
		}
		runtime.ReadMemStats(&before)
		var open []*Reader
		for range readers {
			r, err := NewReader(f, "text/event-stream", coding)
			if err != nil {
				t.Fatal(err)
			}
			for p := range slices.Chunk(body[:len(body)-10], 4096) {
				_, _ = r.Write(p)
			}
			open = append(open, r)
		}
		for range 2 {
			runtime.GC()
		}
		runtime.ReadMemStats(&after)
		each := (int64(after.HeapAlloc+after.StackInuse) - int64(before.HeapAlloc+before.StackInuse)) / readers
		if t.Logf("%s: %.1f KiB for each response", coding, float64(each)/1024); each > most {
			t.Errorf("%s: %d bytes for each response, want at most %d", coding, each, most)
		}
		for _, r := range open {
			_ = r.Close()
		}
	}
}

// TestLargeAnswer: to read an answer of 1 GB takes less than 64 KiB in all, whatever it is made of. CI reads a part
// of it.
func TestLargeAnswer(t *testing.T) {
	const json, sse = "application/json", "text/event-stream"
	for name, c := range map[string]struct{ contentType, begin, piece, end string }{
		"one text":           {json, `{"text":"`, `it said \"usage\":{\"total\":1} and so on, `, `","usage":{"total":42}}`},
		"one event":          {sse, `data: {"text":"`, `it said \"usage\":{\"total\":1} and so on, `, "\",\"usage\":{\"total\":42}}\n\n"},
		"many events":        {sse, "", "data: {\"choices\":[{\"text\":\"{\\\"usage\"}],\"usage\":{\"total\":7}}\n\n", "data: {\"usage\":{\"total\":42}}\n\n"},
		"many lines":         {"application/x-ndjson", "", "{\"done\":false,\"usage\":null}\n", `{"done":true,"usage":{"total":42}}`},
		"brackets":           {json, `{"x":`, `[{"usage":[`, ``},
		"members":            {json, `{"a":0`, `,"usage":{"total":1,"x":[]}`, `,"usage":{"total":42}}`},
		"one name":           {json, `{"`, `usage`, `":0,"usage":{"total":42}}`},
		"one name in escape": {json, `{"`, `\u0075`, `":0,"usage":{"total":42}}`},
		"one number":         {json, `{"usage":{"total":`, `1`, `,"total":42}}`},
		"space":              {json, `{"usage":`, "\r\n \t", `{"total":42}}`},
	} {
		r, _ := NewReader(mustParse(t, "usage.total"), c.contentType, "")
		piece := []byte(strings.Repeat(c.piece, 30_000/len(c.piece)))
		n := deep.Steps(1<<20, 1<<30) / len(piece)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = io.WriteString(r, c.begin)
		for range n {
			_, _ = r.Write(piece)
		}
		if name == "brackets" {
			closing := []byte(strings.Repeat("]}]", len(piece)/len(c.piece)))
			for range n {
				_, _ = r.Write(closing)
			}
			_, _ = io.WriteString(r, `,"usage":{"total":42}}`)
		}
		_, _ = io.WriteString(r, c.end)
		_ = r.Close()
		runtime.ReadMemStats(&after)
		if got := shownCost(r.Cost()); got != "42" {
			t.Errorf("%s: %s", name, got)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<10 {
			t.Errorf("%s: %d bytes were allocated for %d MB", name, allocated, n*len(piece)>>20)
		}
	}
}
