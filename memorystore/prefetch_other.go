//go:build !amd64 && !arm64

package memorystore

import "unsafe"

// prefetch does nothing on other processors.
func prefetch(unsafe.Pointer) {}
