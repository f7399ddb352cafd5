package usage

import (
	"strings"
	"testing"
)

// BenchmarkTexts reads fields of bodies: of a small call, and of one whose rest is large.
func BenchmarkTexts(b *testing.B) {
	texts := mustParseTexts(b, "method", "params.name")
	for name, body := range map[string]string{
		"small": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"q":"x"}}}`,
		"large": `{"method":"tools/call","params":{"name":"search","arguments":{"q":"` + strings.Repeat("x", 900_000) + `"}}}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := texts.Read([]byte(body)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
