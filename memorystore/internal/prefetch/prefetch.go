//go:build amd64 || arm64

// Package prefetch has memory read before it is needed. Go has no such function. It is a package of its own, so that
// "make lint" vets its assembly on each architecture without compiling more.
package prefetch

import "unsafe"

// At asks the processor to read memory into its caches, and does not wait for that. The address may be any.
//
//go:noescape
func At(address unsafe.Pointer)
