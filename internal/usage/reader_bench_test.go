package usage

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkReader reads bodies as they come from a proxy: the streams of all providers an event at a time, the
// rest in pieces of 4 KB.
func BenchmarkReader(b *testing.B) {
	text := strings.Repeat("The tide comes in twice a day, and nobody has asked it to.\\n", 40)
	escaped := strings.Repeat(`{\"a\":\"b\",\n`, 200)
	var array strings.Builder
	for i := range 500 {
		fmt.Fprintf(&array, `{"logprob":-0.%d,"token":"t%d","bytes":[%d,%d]},`, i, i, i%256, i%7)
	}
	var stream strings.Builder
	for i := range 100 {
		fmt.Fprintf(&stream, "data: {\"id\":\"chatcmpl-123\",\"object\":\"chat.completion.chunk\",\"created\":1694268190,\"model\":\"gpt-4o-mini\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word %d\"},\"finish_reason\":null}],\"usage\":null}\n\n", i)
	}
	fields := mustParse(b, "usage.prompt_tokens usage.prompt_tokens_details.cached_tokens*-0.5 usage.completion_tokens*4")
	for _, c := range []struct{ name, contentType, body string }{
		{"text", "application/json", `{"choices":[{"message":{"content":"` + text + `"}}]}`},
		{"escapes", "application/json", `{"choices":[{"message":{"content":"` + escaped + `"}}]}`},
		{"structure", "application/json", `{"choices":[{"logprobs":[` + array.String() + `1]}]}`},
		{"stream", "text/event-stream", stream.String()},
	} {
		benchmarkReader(b, c.name, fields, c.contentType, pieces(c.body, 4096))
	}
	for name, a := range recordedAnswers(b) {
		if format := formatOf(a.contentType); format == eventStream || format == lines {
			benchmarkReader(b, name, a.fields, a.contentType, a.inEvents())
		}
	}
}

func benchmarkReader(b *testing.B, name string, f *Fields, contentType string, pieces [][]byte) {
	b.Run(name, func(b *testing.B) {
		r, _ := NewReader(f, contentType, "")
		total := 0
		for _, p := range pieces {
			total += len(p)
		}
		b.SetBytes(int64(total))
		b.ReportAllocs()
		for b.Loop() {
			for _, p := range pieces {
				_, _ = r.Write(p)
			}
		}
	})
}

// pieces cuts a text into pieces of a size.
func pieces(text string, size int) (all [][]byte) {
	for ; len(text) > size; text = text[size:] {
		all = append(all, []byte(text[:size]))
	}
	return append(all, []byte(text))
}
