package simredis

import "strings"

// Slots is how many slots the keys of a Cluster are spread over.
const Slots = 16384

// Slot returns the slot of a key, computed bit by bit: the CRC-16 (XMODEM) of what is in its first braces, if that is
// something.
func Slot(key string) uint16 {
	if _, behind, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(behind, "}"); closed && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for _, c := range []byte(key) {
		crc ^= uint16(c) << 8
		for range 8 {
			high := crc >> 15
			crc = crc<<1 ^ high*0x1021
		}
	}
	return crc % Slots
}
