package usage

import "bytes"

// events splits a text/event-stream into events, whose data it hands on as it comes. It takes all line
// ends that the HTML standard allows, and data of several lines.
type events struct {
	field int  // how much of the line is as in dataField; -1 if it is another line
	hadCR bool // the last byte was a CR, so that a LF belongs to it
	begun bool // the event has data
	count int64
}

const dataField = "data:"

// write reads the next piece of the stream, and hands the data of events on. It does not cut off the space in front of
// data and the end of a line, because both are space in JSON.
func (e *events) write(p []byte, to *scanner) {
	for len(p) > 0 {
		part := p
		end := bytes.IndexAny(p, "\r\n") + 1
		if end > 0 {
			part = p[:end]
		}
		p = p[len(part):]
		if e.hadCR && part[0] == '\n' {
			e.hadCR = false
			continue
		}
		e.hadCR = end > 0 && part[end-1] == '\r'
		if end == 1 && e.field == 0 {
			e.end(to)
			continue
		}
		for len(part) > 0 && e.field >= 0 && e.field < len(dataField) {
			if part[0] != dataField[e.field] {
				e.field = -1
				break
			}
			part = part[1:]
			e.field++
		}
		if e.field == len(dataField) {
			if !e.begun {
				e.begun = true
				to.reset()
			}
			to.write(part)
		}
		if end > 0 {
			e.field = 0
		}
	}
}

// end ends an event.
func (e *events) end(to *scanner) {
	if e.begun && to.objs > 0 {
		e.count++
	}
	e.begun, to.objs = false, 0
}
