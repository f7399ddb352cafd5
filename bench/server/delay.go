package main

import (
	"errors"
	"io"
	"net"
	"time"
)

// delayed is a TCP proxy that makes the round trip longer without making it narrower: everything
// from a client is passed on later by the delay, however much has come meanwhile. Answers pass at
// once. The proxy takes its CPU time from what is measured, so it must take little.
type delayed struct {
	listener        net.Listener
	network, target string
	delay           time.Duration
}

func delay(network, target string, by time.Duration) (*delayed, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &delayed{listener: listener, network: network, target: target, delay: by}
	go d.accept()
	return d, nil
}

func (d *delayed) Address() string { return d.listener.Addr().String() }

// Close ends the listener. Connections that are open end with their clients.
func (d *delayed) Close() error { return d.listener.Close() }

func (d *delayed) accept() {
	for {
		client, err := d.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(d.network, d.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		go d.later(server, client)
		go func() {
			// Between sockets, io.Copy would have the kernel splice, which takes more calls for
			// this little data.
			_, _ = io.Copy(struct{ io.Writer }{client}, struct{ io.Reader }{server})
			_ = errors.Join(client.Close(), server.Close())
		}()
	}
}

// inFlight is how many pieces of a connection may be on their way at once.
const inFlight = 4096

type piece struct {
	data []byte
	due  time.Time
}

func (d *delayed) later(server, client net.Conn) {
	pieces := make(chan piece, inFlight)
	go func() {
		defer server.Close()
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			if _, err := server.Write(p.data); err != nil {
				_ = client.Close()
			}
		}
	}()
	defer close(pieces)
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if n > 0 {
			pieces <- piece{append([]byte(nil), buffer[:n]...), time.Now().Add(d.delay)}
		}
		if err != nil {
			return
		}
	}
}
