package late

import (
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Routes says whether error routes may respond to a request whose handlers fail.
type Routes interface{ ErrorRoutes(r *http.Request) bool }

// Serve calls the next handlers for a request that may pass, and does what remains to be done when
// it is over, even after a panic. The completion is nil if nothing remains.
func (c *Completion) Serve(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, routes Routes) (err error) {
	if c == nil {
		return next.ServeHTTP(w, r)
	}
	var writer *chargeWriter
	returned := false
	defer func() {
		c.Release()
		switch {
		case writer != nil && writer.waitsForError():
		case returned: // so its writer has seen the response begin, and a handler may still have it
			c.End()
		default:
			c.endSession()
		}
	}()
	if !c.chargesLate() && len(c.strips) == 0 {
		err = next.ServeHTTP(w, r)
		returned = true
		return err
	}
	s := &served{completion: c, routes: routes}
	if c.chargesLate() {
		s.body = watchBody(r)
	}
	if c.readsBody() {
		acceptReadable(r.Header)
	}
	if c.body != nil {
		s.toAccessLog(r)
	}
	writer = &s.writer
	s.watch(writer, w, r)
	defer func() { writer.over(returned, err) }()
	err = next.ServeHTTP(writer, r)
	returned = true
	return err
}

// served is a request whose response is watched.
type served struct {
	completion *Completion
	routes     Routes
	writer     chargeWriter
	body       *requestBody  // nil if there is none, or if the response changes no charge
	errors     *chargeWriter // of the response to the request's error, if that changes charges
}

// acceptReadable keeps the upstream from compressing its response in a way that cannot be read, which a
// client could ask for in order to pay no more than what was booked.
func acceptReadable(header http.Header) {
	const field = "Accept-Encoding"
	accepted := header[field]
	if len(accepted) == 0 {
		return
	}
	coding := "identity"
	for element := range strings.SplitSeq(strings.ToLower(strings.Join(accepted, ",")), ",") {
		name, parameters, _ := strings.Cut(element, ";")
		weight := strings.TrimSpace(parameters)
		refused := strings.HasPrefix(weight, "q=0") && strings.Trim(weight[2:], "0.") == ""
		if name = strings.TrimSpace(name); (name == "gzip" || name == "*") && !refused {
			coding = "gzip"
		}
	}
	header[field] = []string{coding}
}

// toAccessLog adds to the request's line in the access log what its response has said.
func (s *served) toAccessLog(r *http.Request) {
	server, _ := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if server == nil || server.Logs == nil {
		return
	}
	if extra, ok := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		extra.Add(zap.Array("rate_limit_costs", s))
	}
}

// MarshalLogArray implements [zapcore.ArrayMarshaler]. The access log is written before the charges of a response to
// an error are settled, so it shows how they will be.
func (s *served) MarshalLogArray(to zapcore.ArrayEncoder) error {
	if w := s.errors; w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.readRest()
		if err := s.completion.logOpenCosts(to, w.endOfError()); err != nil {
			return err
		}
	}
	return s.completion.logCosts(to)
}

// mostUnread is how much of a body waits to be read until it is flushed.
const mostUnread = 4 << 10

// readLater reads a piece of the body when the client has it. A small piece is in the server's buffer until it is
// flushed.
func (w *chargeWriter) readLater(piece []byte) {
	if len(w.unread)+len(piece) <= mostUnread {
		w.unread = append(w.unread, piece...)
		return
	}
	w.readRest()
	w.completion.readBody(piece)
}

// readRest reads what waits for that.
func (w *chargeWriter) readRest() {
	if len(w.unread) > 0 {
		w.completion.readBody(w.unread)
		w.unread = w.unread[:0]
	}
}

var pieces = sync.Pool{New: func() any { return new([4 << 10]byte) }}

// copyPieces writes a body in pieces, so that each of them is seen.
func copyPieces(w io.Writer, r io.Reader) (int64, error) {
	buffer := pieces.Get().(*[4 << 10]byte)
	defer pieces.Put(buffer)
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, buffer[:])
}
