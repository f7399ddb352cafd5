package protocol

import "strings"

// keyBytes returns how many bytes a small key may take in a server of which this is the INFO.
func keyBytes(info string) int64 {
	switch {
	case strings.Contains(info, "valkey_version:"):
		return 168
	case strings.Contains(info, "redis_version:6."), strings.Contains(info, "redis_version:7."):
		return 152
	}
	return 160
}
