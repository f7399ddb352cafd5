//go:build !race

package deep

const raceDetector = false
