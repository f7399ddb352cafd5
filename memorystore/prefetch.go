//go:build amd64 || arm64

package memorystore

import "unsafe"

// prefetch asks the processor to read memory into its caches, and does not wait for that. The address may
// be any. Go has no such function.
//
//go:noescape
func prefetch(address unsafe.Pointer)
