package harness

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
)

// Upgrade asks for a WebSocket. The connection stays open until the test ends.
func (s *Server) Upgrade(t *testing.T) (net.Conn, int) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_, err = io.WriteString(conn, "GET /socket HTTP/1.1\r\nHost: "+s.Address+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, response.StatusCode
}
