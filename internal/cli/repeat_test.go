package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// asking returns a fleet of one instance, whose answers come from a handler.
func asking(t *testing.T, out *strings.Builder, width int, answer http.HandlerFunc) *fleet {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	s := &screen{out: out, err: out, width: width}
	e := &endpoint{screen: s, address: strings.TrimPrefix(server.URL, "http://")}
	return &fleet{screen: s, caddys: []*endpoint{e}, asked: e}
}

// TestRepeat: with --watch an answer comes again and again, also after one that fails, until the command is interrupted.
func TestRepeat(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out strings.Builder
	asked := 0
	f := asking(t, &out, 0, func(w http.ResponseWriter, _ *http.Request) {
		switch asked++; asked {
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"error": "it starts"}`)
			return
		case 4:
			interrupt()
		}
		rate := float64(asked)
		_ = json.NewEncoder(w).Encode([]adminapi.Zone{{
			Name: "clients", Limit: "sliding_window_log 100/1m", Store: "memory", Rate: &rate, Totals: map[string]uint64{"allowed": uint64(asked), "limited": 1},
		}})
	})
	if err := f.repeat(ctx, 0, (*fleet).zones); err != nil {
		t.Error(err)
	}
	rest := out.String()
	for _, want := range []string{" 1.00/s  1        1        50.0 %", "it starts", " 3.00/s  3        1        25.0 %", " 4.00/s  4        1        20.0 %"} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Errorf("no %q in the right place:\n%s", want, out.String())
		}
		rest = after
	}
	if n := strings.Count(out.String(), "ZONE "); n != 3 {
		t.Errorf("%d tables:\n%s", n, out.String())
	}
}

// TestRepeatGivesUp: the first answer must come, and one that never comes again ends the command.
func TestRepeatGivesUp(t *testing.T) {
	for name, good := range map[string]int{"at first": 0, "later": 1} {
		var out strings.Builder
		asked := 0
		f := asking(t, &out, 0, func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked > good {
				w.WriteHeader(http.StatusServiceUnavailable)
				fmt.Fprint(w, `{"error": "it is gone"}`)
				return
			}
			fmt.Fprint(w, "[]")
		})
		err := f.repeat(t.Context(), 0, (*fleet).zones)
		if err == nil || err.Error() != "it is gone" {
			t.Errorf("%s: %v", name, err)
		}
		if want := good + 1 + good*maxReconnects; asked != want {
			t.Errorf("%s: asked %d times, want %d", name, asked, want)
		}
	}
}

// TestFrame: in a terminal an answer replaces the one before, and is cut at the last line.
func TestFrame(t *testing.T) {
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.Local)
	for _, c := range []struct {
		s     screen
		first bool
		want  string
	}{
		{screen{json: true}, false, "a\nb\nc\n"},
		{screen{}, true, "a\nb\nc\n\n09:00:00\n"},
		{screen{}, false, "\na\nb\nc\n\n09:00:00\n"},
		{screen{terminal: true, height: 6}, true, "\x1b[Ha\x1b[K\nb\x1b[K\nc\x1b[K\n\x1b[K\n09:00:00\x1b[K\n\x1b[J"},
		{screen{terminal: true, height: 4}, false, "\x1b[Ha\x1b[K\nb\x1b[K\n… 3 lines more\x1b[K\n\x1b[J"},
	} {
		if got := c.s.frame("a\nb\nc\n", at, c.first); got != c.want {
			t.Errorf("%+v:\n%q, want\n%q", c.s, got, c.want)
		}
	}
}

// TestOptionsOfAZone: the details of a zone repeat nothing that its limit and its key say.
func TestOptionsOfAZone(t *testing.T) {
	for config, want := range map[string]string{
		`{"key": "{http.vars.client_ip}", "max_events": 5, "window": 60000000000}`:                                ``,
		`{"match": [{"path": ["/a", "/b"]}], "max_events": 5, "cost": "{http.vars.c} 2", "max_wait": 2000000000}`: `{"match":[{"path":["/a","/b"]}],"cost":"{http.vars.c} 2","max_wait":"2s"}`,
	} {
		if got, err := readable(json.RawMessage(config)); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", config, got, err, want)
		}
	}
}
