//go:build deep

package floods_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// wire is an open connection. Requests are written at once, and their answers read later.
type wire interface {
	io.Closer

	// write writes a request of a path for each key.
	write(path string, keys []string) error

	// read returns the status of the answer to each of them.
	read() (statuses []int, err error)
}

// protocols are what a flood can speak. Plain HTTP/2 costs a client least.
var protocols = map[string]func(f *busyTarget) (wire, error){
	"HTTP/1.1":       func(f *busyTarget) (wire, error) { return newWire1(net.Dial("tcp", f.Address)) },
	"HTTP/2, no TLS": func(f *busyTarget) (wire, error) { return newWire2(net.Dial("tcp", f.Address)) },
	"HTTP/2": func(f *busyTarget) (wire, error) {
		return newWire2(tls.Dial("tcp", f.secure, f.tls("h2")))
	},
	"HTTP/3": func(f *busyTarget) (wire, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patient.Patience)
		defer cancel()
		conn, err := quic.DialAddr(ctx, f.secure, f.tls(http3.NextProtoH3), &quic.Config{KeepAlivePeriod: 5 * time.Second})
		if err != nil {
			return nil, err
		}
		return &wire3{ClientConn: new(http3.Transport).NewClientConn(conn)}, nil
	},
}

// wire1 is HTTP/1.1.
type wire1 struct {
	net.Conn
	answers *bufio.Reader
	waiting int
}

func newWire1(conn net.Conn, err error) (wire, error) {
	if err != nil {
		return nil, err
	}
	return &wire1{Conn: conn, answers: bufio.NewReader(conn)}, nil
}

func (l *wire1) write(path string, keys []string) error {
	l.waiting = len(keys)
	var out bytes.Buffer
	for _, key := range keys {
		fmt.Fprintf(&out, "GET %s HTTP/1.1\r\nHost: a\r\nX-Key: %s\r\n\r\n", path, key)
	}
	_ = l.SetDeadline(time.Now().Add(patient.Patience))
	_, err := l.Write(out.Bytes())
	return err
}

func (l *wire1) read() (statuses []int, err error) {
	for range l.waiting {
		response, err := http.ReadResponse(l.answers, nil)
		if err != nil {
			return statuses, err
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return statuses, err
		}
		statuses = append(statuses, response.StatusCode)
	}
	return statuses, nil
}

// wire2 is HTTP/2. It writes frames, because a client would take its time.
type wire2 struct {
	net.Conn
	frames    *http2.Framer // writes into out
	out, head bytes.Buffer
	encoder   *hpack.Encoder
	stream    uint32
	waiting   int
}

func newWire2(conn net.Conn, err error) (wire, error) {
	if err != nil {
		return nil, err
	}
	l := &wire2{Conn: conn, stream: 1}
	l.frames, l.encoder = http2.NewFramer(&l.out, conn), hpack.NewEncoder(&l.head)
	l.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	l.out.WriteString(http2.ClientPreface)
	if err := l.frames.WriteSettings(); err != nil {
		return nil, err
	}
	if err := l.frames.WriteWindowUpdate(0, 1<<30); err != nil {
		return nil, err
	}
	return l, l.flush()
}

func (l *wire2) flush() error {
	_ = l.SetDeadline(time.Now().Add(patient.Patience))
	_, err := l.Write(l.out.Bytes())
	l.out.Reset()
	return err
}

func (l *wire2) write(path string, keys []string) error {
	l.waiting = len(keys)
	for _, key := range keys {
		if err := l.begin(path, key); err != nil {
			return err
		}
	}
	return l.flush()
}

// begin writes a request without sending it.
func (l *wire2) begin(path, key string) error {
	l.head.Reset()
	for _, field := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "localhost"}, {":path", path}, {"x-key", key}} {
		if err := l.encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			return err
		}
	}
	head := http2.HeadersFrameParam{StreamID: l.stream, BlockFragment: l.head.Bytes(), EndStream: true, EndHeaders: true}
	l.stream += 2
	return l.frames.WriteHeaders(head)
}

func (l *wire2) read() (statuses []int, err error) {
	for l.waiting > 0 {
		frame, err := l.frames.ReadFrame()
		if err != nil {
			return statuses, err
		}
		ended := false
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			var status int
			if _, err := fmt.Sscan(f.PseudoValue("status"), &status); err != nil {
				return statuses, err
			}
			statuses, ended = append(statuses, status), f.StreamEnded()
		case *http2.DataFrame:
			ended = f.StreamEnded()
		case *http2.PingFrame:
			if !f.IsAck() {
				_ = l.frames.WritePing(true, f.Data)
				err = l.flush()
			}
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			err = fmt.Errorf("%v", frame)
		}
		if err != nil {
			return statuses, err
		}
		if ended {
			l.waiting--
		}
	}
	return statuses, nil
}

// wire3 is HTTP/3.
type wire3 struct {
	*http3.ClientConn
	streams []*http3.RequestStream
}

func (l *wire3) Close() error { return l.CloseWithError(0, "") }

func (l *wire3) write(path string, keys []string) error {
	l.streams = l.streams[:0]
	for _, key := range keys {
		request, err := http.NewRequest(http.MethodGet, "https://localhost"+path, nil)
		if err != nil {
			return err
		}
		request.Header.Set("X-Key", key)
		stream, err := l.OpenRequestStream(l.Context())
		if err != nil {
			return err
		}
		_ = stream.SetDeadline(time.Now().Add(patient.Patience))
		if err := stream.SendRequestHeader(request); err != nil {
			return err
		}
		_ = stream.Close() // the answer may have come before
		l.streams = append(l.streams, stream)
	}
	return nil
}

func (l *wire3) read() (statuses []int, err error) {
	for _, stream := range l.streams {
		response, err := stream.ReadResponse()
		if err != nil {
			return statuses, err
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return statuses, err
		}
		statuses = append(statuses, response.StatusCode)
	}
	return statuses, nil
}

// tls is the config of a client that speaks a protocol.
func (f *busyTarget) tls(protocol string) *tls.Config {
	config := f.trust.Clone()
	config.NextProtos = []string{protocol}
	return config
}

// secureAddress is the address of a site with TLS, and what its clients trust.
func secureAddress(versions []harness.Version) (string, *tls.Config) {
	v := versions[1]
	return strings.TrimPrefix(v.URL, "https://"), v.Client.Transport.(*http.Transport).TLSClientConfig
}
