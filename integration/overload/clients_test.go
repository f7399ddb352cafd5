//go:build deep

package overload_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// TestWebSocket: a connection that is upgraded holds no slot.
func TestWebSocket(t *testing.T) {
	p := start(t, "max 1\nmax_wait 1m")
	conn, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patient.Patience))
	p.up.of("chat") <- http.StatusSwitchingProtocols
	fmt.Fprint(conn, "GET /chat HTTP/1.1\r\nHost: localhost\r\nKey: chat\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	p.arrives("chat")
	from := bufio.NewReader(conn)
	response, err := http.ReadResponse(from, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(response, err)
	}
	echo := func(text string) {
		t.Helper()
		fmt.Fprintln(conn, text)
		if got, err := from.ReadString('\n'); got != text+"\n" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	echo("one")
	p.up.of("b") <- http.StatusOK
	if got := <-p.send(t.Context(), "b", "/"); got.status != http.StatusOK {
		t.Errorf("beside the connection: %+v", got)
	}
	echo("two")
	if s := state(t); s.Running != 0 || s.Useful != 2 {
		t.Errorf("%+v while a WebSocket is open", s)
	}
}

// TestSlowLoris: clients that read nothing of a response, which is larger than all buffers, hold no slot.
func TestSlowLoris(t *testing.T) {
	p := start(t, "max 1\nmax_wait 1m")
	for range 5 {
		conn, err := net.Dial("tcp", p.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		p.up.of("slow") <- http.StatusOK
		fmt.Fprint(conn, "GET /large HTTP/1.1\r\nHost: localhost\r\nKey: slow\r\n\r\n")
		p.arrives("slow")
	}
	p.up.of("b") <- http.StatusOK
	if got := <-p.send(t.Context(), "b", "/"); got.status != http.StatusOK {
		t.Errorf("%+v", got)
	}
	if n := p.up.sending.Load(); n != 5 {
		t.Errorf("the upstream still sends %d responses, want 5 that nobody reads", n)
	}
	if s := state(t); s.Running != 0 {
		t.Errorf("%+v", s)
	}
}

// large writes more than all buffers between the upstream and a client hold.
func (u *upstream) large(w io.Writer) {
	u.sending.Add(1)
	defer u.sending.Add(-1)
	block := make([]byte, 1<<20)
	for range 64 {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// echo answers as a WebSocket server does, and sends all lines back.
func (u *upstream) echo(w http.ResponseWriter) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
	_, _ = io.Copy(conn, buffered)
}
