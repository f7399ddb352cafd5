package simredis

import (
	"encoding/binary"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// The struct library, as far as scripts use it: big-endian integers, and texts.

// part is a part of a format: a letter, and the number behind it, or -1.
type part struct {
	kind byte
	size int
}

func parts(l *lua.LState, format string) (all []part) {
	format, big := strings.CutPrefix(format, ">")
	if !big {
		l.RaiseError("simredis knows big-endian formats only, got %s", format)
	}
	for i := 0; i < len(format); {
		p := part{format[i], -1}
		for i++; i < len(format) && '0' <= format[i] && format[i] <= '9'; i++ {
			p.size = 10*max(p.size, 0) + int(format[i]-'0')
		}
		switch p.kind {
		case 'B':
			p.size = 1
		case 'H':
			p.size = 2
		case 'i', 'I', 'c', 's':
		default:
			l.RaiseError("simredis does not know the format %c", p.kind)
		}
		all = append(all, p)
	}
	return all
}

func pack(l *lua.LState) int {
	var room [160]byte
	b := room[:0]
	for n, p := range parts(l, l.CheckString(1)) {
		if p.kind == 'c' { // c0: all of a text
			b = append(b, l.CheckString(n+2)...)
			continue
		}
		var room [8]byte
		number := float64(l.CheckNumber(n + 2))
		value := uint64(int64(number))
		if number >= 1<<63 {
			value = uint64(number)
		}
		binary.BigEndian.PutUint64(room[:], value)
		b = append(b, room[8-p.size:]...)
	}
	l.Push(lua.LString(b))
	return 1
}

// integer is a big-endian integer of up to eight bytes.
func integer(b string, signed bool) lua.LNumber {
	var value uint64
	for _, c := range []byte(b) {
		value = value<<8 | uint64(c)
	}
	if shift := 64 - 8*len(b); signed {
		return lua.LNumber(int64(value<<shift) >> shift)
	}
	return lua.LNumber(value)
}

func unpack(l *lua.LState) int {
	all, text := parts(l, l.CheckString(1)), l.CheckString(2)
	at, first := l.OptInt(3, 1)-1, l.GetTop()
	need := func(n int) {
		if at < 0 || at+n > len(text) {
			l.ArgError(2, "data string too short")
		}
	}
	for _, p := range all {
		switch p.kind {
		case 's':
			need(0)
			end := strings.IndexByte(text[at:], 0)
			if end < 0 {
				l.RaiseError("unfinished string in data")
			}
			l.Push(lua.LString(text[at : at+end]))
			at += end + 1
		default:
			need(p.size)
			l.Push(integer(text[at:at+p.size], p.kind == 'i'))
			at += p.size
		}
	}
	l.Push(lua.LNumber(at + 1))
	return l.GetTop() - first
}

// The cmsgpack library, as far as scripts use it: numbers and texts.

// decode returns the first value of some bytes, and how many it has; 0: that is none.
func decode(b string) (lua.LValue, int) {
	number := func(size int, signed bool) (lua.LValue, int) {
		if len(b) < 1+size {
			return nil, 0
		}
		return integer(b[1:1+size], signed), 1 + size
	}
	text := func(head, size int) (lua.LValue, int) {
		if len(b) < head+size {
			return nil, 0
		}
		return lua.LString(b[head : head+size]), head + size
	}
	switch kind := b[0]; {
	case kind < 0x80:
		return lua.LNumber(kind), 1
	case kind&0xe0 == 0xa0:
		return text(1, int(kind&0x1f))
	case 0xcc <= kind && kind <= 0xcf:
		return number(1<<(kind-0xcc), false)
	case 0xd0 <= kind && kind <= 0xd3:
		return number(1<<(kind-0xd0), true)
	case 0xd9 <= kind && kind <= 0xdb:
		size := 1 << (kind - 0xd9)
		n, _ := number(size, false)
		if n == nil {
			return nil, 0
		}
		return text(1+size, int(n.(lua.LNumber)))
	}
	return nil, 0
}

func unpackLimit(l *lua.LState) int {
	text, limit, at := l.CheckString(1), l.CheckInt(2), l.OptInt(3, 0)
	switch {
	case at < 0 || limit < 0:
		l.RaiseError("Invalid request to unpack with offset of %d and limit of %d.", at, len(text))
	case at > len(text):
		l.RaiseError("Start offset %d greater than input length %d.", at, len(text))
	}
	place := l.GetTop() + 1
	l.Push(lua.LNil)
	n := 0
	for ; at < len(text) && (limit == 0 || n < limit); n++ {
		v, size := decode(text[at:])
		if size == 0 {
			l.RaiseError("Bad data format in input.")
		}
		l.Push(v)
		at += size
	}
	if at == len(text) {
		at = -1
	}
	l.Replace(place, lua.LNumber(at))
	return n + 1
}
