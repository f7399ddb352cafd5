package main

import (
	"bufio"
	"fmt"
	"net"
	"testing"
	"time"
)

// TestDelay: a thousand lines that are sent at once come back in order, none before the delay,
// and all of them long before a thousand delays.
func TestDelay(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		conn, err := echo.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			fmt.Fprintln(conn, lines.Text())
		}
	}()
	const by, lines = 50 * time.Millisecond, 1000
	proxy, err := delay("tcp", echo.Addr().String(), by)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	conn, err := net.Dial("tcp", proxy.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begin := time.Now()
	go func() {
		for i := range lines {
			fmt.Fprintln(conn, i)
		}
	}()
	answers := bufio.NewScanner(conn)
	for i := range lines {
		if !answers.Scan() {
			t.Fatalf("line %d: %v", i, answers.Err())
		}
		if took := time.Since(begin); took < by {
			t.Fatalf("line %d came after %v", i, took)
		}
		if got := answers.Text(); got != fmt.Sprint(i) {
			t.Fatalf("line %d is %q", i, got)
		}
	}
	if took := time.Since(begin); took > lines*by/2 {
		t.Errorf("%d lines took %v, as if one waited for the other", lines, took)
	}
}
