package topology

import (
	"strconv"
	"strings"
)

// Slots is how many slots the keys of a Cluster are spread over.
const Slots = 16384

// SlotOf returns a key's slot: the CRC-16 (XMODEM) of what is between its first braces.
func SlotOf(key string) uint16 {
	if i := strings.IndexByte(key, '{'); i >= 0 {
		if n := strings.IndexByte(key[i+1:], '}'); n > 0 {
			key = key[i+1 : i+1+n]
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		crc = crc<<8 ^ crc16[byte(crc>>8)^key[i]]
	}
	return crc % Slots
}

// TagAt returns a hash tag that has a slot.
func TagAt(slot uint16) string {
	for i := 0; ; i++ {
		if tag := strconv.Itoa(i); SlotOf(tag) == slot {
			return tag
		}
	}
}

var crc16 = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()
