package usage

import "bytes"

// events splits a text/event-stream into events, whose data it hands on as it comes. It takes all line
// ends that the HTML standard allows, and data of several lines.
type events struct {
	line  lineState
	at    int  // how much of dataField, or of the byte order mark, has been read
	hadCR bool // the last byte was a CR, so that a LF belongs to it
	begun bool // the event has data
	count int64
}

type lineState uint8

const (
	atMark  lineState = iota // at the start of the stream, perhaps in a byte order mark
	inField                  // at the start of a line, perhaps in dataField
	atData                   // before data, perhaps with a space in front of it
	inData
	inOther // in a line without data
)

const (
	mark      = "\xef\xbb\xbf"
	dataField = "data:"
)

// write reads the next piece of the stream, and hands the data of events on.
func (e *events) write(p []byte, to *scanner) {
	nextCR, nextLF := -1, -1 // from where they were last looked for
	for i := 0; i < len(p); {
		if e.hadCR {
			e.hadCR = false
			if p[i] == '\n' {
				i++
				continue
			}
		}
		switch e.line {
		case atMark:
			if p[i] == mark[e.at] {
				i++
				if e.at++; e.at < len(mark) {
					continue
				}
			}
			e.line, e.at = inField, 0
			continue
		case inField:
			if e.at == 0 && i+len(dataField) <= len(p) && string(p[i:i+len(dataField)]) == dataField {
				i += len(dataField)
				e.line = atData
				continue
			}
			if p[i] == dataField[e.at] {
				i++
				if e.at++; e.at == len(dataField) {
					e.line = atData
				}
				continue
			}
			if e.at == 0 && (p[i] == '\r' || p[i] == '\n') {
				e.end(to)
				e.hadCR = p[i] == '\r'
				i++
				continue
			}
			e.line = inOther
		case atData:
			if !e.begun {
				e.begun = true
				to.reset()
			}
			e.line = inData
			if p[i] == ' ' {
				i++
			}
			continue
		}
		end := nextOf(p, i, '\n', &nextLF)
		if cr := nextOf(p, i, '\r', &nextCR); cr < end {
			end = cr
		}
		line, ended := e.line, end < len(p)
		if ended {
			e.hadCR = p[end] == '\r'
			e.line, e.at = inField, 0
			end++
		}
		if line == inData {
			to.write(p[i:end]) // with its end, which is space in JSON
		}
		i = end
	}
}

// end ends an event.
func (e *events) end(to *scanner) {
	if e.begun && to.objs > 0 {
		e.count++
	}
	e.begun, to.objs = false, 0
}

// nextOf returns where a byte is from i on, or the length. It remembers what it has found.
func nextOf(p []byte, i int, c byte, known *int) int {
	if *known < i {
		if *known = bytes.IndexByte(p[i:], c); *known < 0 {
			*known = len(p)
		} else {
			*known += i
		}
	}
	return *known
}
