//go:build !amd64 && !arm64

// Package prefetch has memory read before it is needed, where there is a way to ask for that.
package prefetch

import "unsafe"

// At does nothing on other processors.
func At(unsafe.Pointer) {}
