//go:build deep

package deep

const run = true
