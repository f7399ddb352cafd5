package walk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/walk"
)

func init() {
	caddy.RegisterModule(new(mark))
	httpcaddyfile.RegisterHandlerDirective("mark", parseMark)
	httpcaddyfile.RegisterDirectiveOrder("mark", httpcaddyfile.Before, "respond")
}

// mark is a handler that notes which requests come to it. A real Caddy calls it, and a walk has it decide, so both
// can be compared.
type mark struct {
	Text   string `json:"text,omitempty"`   // what it notes; may have placeholders
	Status int    `json:"status,omitempty"` // not 0: it refuses requests with this status
	Ends   bool   `json:"ends,omitempty"`   // it answers
}

func (*mark) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.mark", New: func() caddy.Module { return new(mark) }}
}

// parseMark parses "mark <text> [<status>|ends]".
func parseMark(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	m := new(mark)
	h.Next()
	if !h.Args(&m.Text) {
		return nil, h.ArgErr()
	}
	if h.NextArg() {
		var err error
		if m.Ends = h.Val() == "ends"; !m.Ends {
			m.Status, err = strconv.Atoi(h.Val())
		}
		return m, err
	}
	return m, nil
}

// marks is the key of the context for what marks note, a *[]string.
type marks struct{}

func (m *mark) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	all := r.Context().Value(marks{}).(*[]string)
	repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	*all = append(*all, fmt.Sprint(repl.ReplaceAll(m.Text, ""), " ", r.Method, " ", r.URL.RequestURI()))
	switch {
	case m.Status > 0:
		return caddyhttp.Error(m.Status, fmt.Errorf("refused by %s", m.Text))
	case m.Ends:
		return nil
	}
	return next.ServeHTTP(w, r)
}

// failer is a test, or a draw of rapid in one.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// load provisions a config and returns its server. What it logs goes to a file, or nowhere.
func load(t failer, config []byte, logs string) *caddyhttp.Server {
	t.Helper()
	var c caddy.Config
	if err := json.Unmarshal(config, &c); err != nil {
		t.Fatalf("%v", err)
	}
	writer := `{"output":"discard"}`
	if logs != "" {
		writer = fmt.Sprintf(`{"output":"file","filename":%q}`, logs)
	}
	c.Admin = &caddy.AdminConfig{Disabled: true}
	c.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{caddy.DefaultLoggerName: {BaseLog: caddy.BaseLog{WriterRaw: []byte(writer), Level: "DEBUG"}}}}
	ctx, err := caddy.ProvisionContext(&c)
	if err != nil {
		t.Fatalf("%v in\n%s", err, config)
	}
	app, err := ctx.App("http")
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, server := range app.(*caddyhttp.App).Servers {
		return server
	}
	t.Fatalf("no server")
	return nil
}

// adapt returns the JSON of a Caddyfile.
func adapt(t testing.TB, caddyfile string) []byte {
	t.Helper()
	config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte("{\n\tauto_https off\n}\n"+caddyfile), nil)
	if err != nil {
		t.Fatalf("%v, %v in\n%s", err, warnings, caddyfile)
	}
	return config
}

// trace is a visitor that notes all it is told.
type trace struct {
	lines   []string
	assumed bool // of a handler
}

func (t *trace) Decides(h caddyhttp.MiddlewareHandler) bool {
	_, ok := h.(*mark)
	return ok
}

func (t *trace) Serve(h caddyhttp.MiddlewareHandler, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return h.ServeHTTP(rw, r, next)
}

func (*trace) Answer(caddyhttp.MiddlewareHandler, http.ResponseWriter, *http.Request) error {
	return nil
}

func (t *trace) Meets(s adminapi.Step) {
	t.assumed = t.assumed || s.Effect == walk.Assumed
	line := strings.TrimSpace(fmt.Sprintf("%s %s: %s", s.Handler, s.Effect, s.Note))
	if s.Route != "" {
		line = s.Route
		if !s.Taken {
			line += " misses " + strings.Join(s.Misses, " and ")
		}
		if s.Match != "" {
			line += " (" + s.Match + ")"
		}
	}
	t.lines = append(t.lines, line)
}

// way is what happens to a request.
type way struct {
	marks  []string
	status int // 0 after a walk that no error has ended
	err    error
}

// walked sends a request on a walk.
func walked(v walk.Visitor, server *caddyhttp.Server, r *http.Request, detailed bool) (w way) {
	r = r.WithContext(context.WithValue(r.Context(), marks{}, &w.marks))
	w.err = walk.Admit(server, r)
	if w.err == nil {
		response := httptest.NewRecorder()
		w.err = walk.Walk(v, server, response, caddyhttp.PrepareRequest(r, caddy.NewReplacer(), response, server), detailed)
	}
	if w.err != nil {
		w.status = http.StatusInternalServerError
		if failed, ok := w.err.(caddyhttp.HandlerError); ok { // Caddy does not unwrap errors either
			w.status = failed.StatusCode
		}
	}
	return w
}

// served has the server itself answer a request.
func served(server *caddyhttp.Server, r *http.Request) (w way) {
	response := httptest.NewRecorder()
	server.ServeHTTP(response, r.WithContext(context.WithValue(r.Context(), marks{}, &w.marks)))
	w.status = response.Code
	return w
}

// compare sends a request on two walks and to the server itself, and reports where they differ. It returns the walk.
func compare(t failer, server *caddyhttp.Server, request func() *http.Request) (*trace, way) {
	t.Helper()
	told, untold := new(trace), new(trace)
	w, q := walked(told, server, request(), true), walked(untold, server, request(), false)
	if fmt.Sprint(w.marks, w.status) != fmt.Sprint(q.marks, q.status) {
		t.Errorf("with routes %q, %d; without %q, %d", w.marks, w.status, q.marks, q.status)
	}
	if told.assumed {
		return told, w
	}
	s := served(server, request())
	if fmt.Sprintf("%q", s.marks) != fmt.Sprintf("%q", w.marks) {
		t.Errorf("Caddy comes to  %q\nthe walk comes to %q\n%s", s.marks, w.marks, strings.Join(told.lines, "\n"))
	}
	errorRoutes := server.Errors != nil && len(server.Errors.Routes) > 0 // Caddy answers the first error if these fail
	if w.err != nil && !errorRoutes && s.status != w.status {
		t.Errorf("Caddy answers %d, the walk %d: %v", s.status, w.status, w.err)
	}
	return told, w
}
