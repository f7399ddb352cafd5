package simredis

import (
	"fmt"
	"strconv"
)

// appendReply appends a reply as it goes over the wire.
func appendReply(to []byte, reply any) []byte {
	switch r := reply.(type) {
	case nil:
		return append(to, "$-1\r\n"...)
	case absent:
		return append(to, "*-1\r\n"...)
	case status:
		return append(append(append(to, '+'), r...), "\r\n"...)
	case failed:
		return append(append(append(to, '-'), r...), "\r\n"...)
	case int64:
		return append(strconv.AppendInt(append(to, ':'), r, 10), "\r\n"...)
	case string:
		to = append(strconv.AppendInt(append(to, '$'), int64(len(r)), 10), "\r\n"...)
		return append(append(to, r...), "\r\n"...)
	case []any:
		to = append(strconv.AppendInt(append(to, '*'), int64(len(r)), 10), "\r\n"...)
		for _, element := range r {
			to = appendReply(to, element)
		}
		return to
	}
	panic(fmt.Sprintf("no reply: %T", reply))
}

// Command returns the first command of some bytes, and what is behind it. It returns nil if not all of it has come.
func Command(b []byte) (args []string, rest []byte) {
	n, b, ok := length(b, '*')
	for ; ok && n > 0; n-- {
		var size int
		if size, b, ok = length(b, '$'); !ok || len(b) < size+2 {
			return nil, nil
		}
		args, b = append(args, string(b[:size])), b[size+2:]
	}
	if !ok {
		return nil, nil
	}
	return args, b
}

func length(b []byte, kind byte) (n int, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	if b[0] != kind {
		panic(fmt.Sprintf("no command: %q", b))
	}
	for i := 1; i+1 < len(b); i++ {
		if b[i] == '\r' {
			return n, b[i+2:], true
		}
		n = 10*n + int(b[i]-'0')
	}
	return 0, nil, false
}
