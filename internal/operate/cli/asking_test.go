package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// asking returns an instance whose answers come from a handler.
func asking(t *testing.T, out *strings.Builder, width int, answer http.HandlerFunc) *instance {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	s := &screen{out: out, err: out, width: width}
	return &instance{screen: s, address: strings.TrimPrefix(server.URL, "http://")}
}
