package faultproxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// readCommand reads a command of Redis's protocol, an array of strings. It returns the command's
// name in lower case, and all of its bytes.
func readCommand(r *bufio.Reader) (name string, raw []byte, err error) {
	var all bytes.Buffer
	words, err := readLength(r, '*', &all)
	if err != nil {
		return "", nil, err
	}
	for i := range words {
		size, err := readLength(r, '$', &all)
		if err != nil {
			return "", nil, err
		}
		start := all.Len()
		if _, err := io.CopyN(&all, r, int64(size)+2); err != nil {
			return "", nil, err
		}
		if i == 0 {
			name = strings.ToLower(string(all.Bytes()[start : start+size]))
		}
	}
	return name, all.Bytes(), nil
}

// readLength reads a line that says how much follows.
func readLength(r *bufio.Reader, sign byte, all *bytes.Buffer) (int, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	all.Write(line)
	if line[0] != sign {
		return 0, fmt.Errorf("a line begins with %q, want %q", line[0], sign)
	}
	return strconv.Atoi(string(bytes.TrimSpace(line[1:])))
}
