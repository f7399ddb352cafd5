package usage

import (
	"bufio"
	"io"
)

// event has the data of an event of a text/event-stream, and of the next ones. It takes all line ends that the HTML
// standard allows, and data of several lines. The space in front of data and the ends of lines stay, because both are
// space in JSON.
type event struct {
	from   *bufio.Reader
	inData bool  // the line is one of data
	hadCR  bool  // the line before ended with a CR, so that a LF belongs to it
	err    error // of the stream
}

const dataField = "data:"

// ReadByte implements [io.ByteReader]. At the end of an event it returns [io.EOF], and goes on with the next one.
func (e *event) ReadByte() (byte, error) {
	for !e.inData {
		if !e.beginLine() {
			return 0, io.EOF
		}
	}
	return e.read()
}

// read reads the next byte of the line.
func (e *event) read() (c byte, err error) {
	if c, err = e.from.ReadByte(); err != nil {
		e.err = err
	}
	if err != nil || c == '\r' || c == '\n' {
		e.inData, e.hadCR = false, c == '\r'
	}
	return c, err
}

// beginLine begins the next line, and reads it if it is none of data. It returns false at an empty line, which ends an event, and
// at the end of the stream.
func (e *event) beginLine() bool {
	if e.hadCR {
		if next, _ := e.from.Peek(1); string(next) == "\n" {
			_, _ = e.from.Discard(1)
		}
	}
	if begin, _ := e.from.Peek(len(dataField)); string(begin) == dataField {
		_, _ = e.from.Discard(len(begin))
		e.inData = true
		return true
	}
	for length := 0; ; length++ {
		if c, err := e.read(); err != nil || c == '\r' || c == '\n' {
			return err == nil && length > 0
		}
	}
}
