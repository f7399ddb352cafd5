package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
