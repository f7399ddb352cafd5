// Package msgpack writes numbers and texts as MessagePack has them, which scripts in Redis read
// faster than anything else.
package msgpack

import "encoding/binary"

// The first bytes of the forms that are written. Smaller numbers and shorter texts have forms in
// which this byte is all, or has the length.
const (
	uint16Form = 0xcd
	uint32Form = 0xce
	int64Form  = 0xd3
	fixText    = 0xa0
	text8Form  = 0xd9
	text16Form = 0xda

	maxFixNumber = 0x7f
	maxFixText   = 31
)

// AppendInt appends a number.
func AppendInt(to []byte, n int64) []byte {
	switch {
	case n < 0 || n >= 1<<32:
		return binary.BigEndian.AppendUint64(append(to, int64Form), uint64(n))
	case n <= maxFixNumber:
		return append(to, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(to, uint16Form), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(to, uint32Form), uint32(n))
}

// AppendText appends a text of less than 64 KiB.
func AppendText[T string | []byte](to []byte, text T) []byte {
	switch n := len(text); {
	case n <= maxFixText:
		to = append(to, fixText|byte(n))
	case n < 1<<8:
		to = append(to, text8Form, byte(n))
	default:
		to = binary.BigEndian.AppendUint16(append(to, text16Form), uint16(n))
	}
	return append(to, text...)
}
