package world

import (
	"crypto/sha1"
	"encoding/hex"
	"sync"
)

// sum is the name of a script in Redis.
func sum(script string) string {
	if known, ok := sums.Load(script); ok {
		return known.(string)
	}
	digest := sha1.Sum([]byte(script)) // by which Redis names scripts
	text := hex.EncodeToString(digest[:])
	sums.Store(script, text)
	return text
}

var sums sync.Map // by script
