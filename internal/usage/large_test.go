package usage

import (
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

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

// TestWritesAllocateNothing: to read a piece of any answer takes no memory.
func TestWritesAllocateNothing(t *testing.T) {
	for name, a := range recordedAnswers(t) {
		r, _ := NewReader(a.fields, a.contentType, "")
		pieces := append(a.inEvents(), slices.Collect(slices.Chunk([]byte(a.body), 100))...)
		if n := testing.AllocsPerRun(1, func() {
			for _, p := range pieces {
				_, _ = r.Write(p)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations in %d writes", name, n, len(pieces))
		}
		_ = r.Close()
	}
}
