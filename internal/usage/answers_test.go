package usage

import (
	"bufio"
	"fmt"
	"net/textproto"
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

func shownCost(n int64, found bool, err error) string {
	switch {
	case err != nil:
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
