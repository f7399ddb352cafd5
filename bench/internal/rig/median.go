package rig

import (
	"fmt"
	"slices"
)

// Median returns the median of the numbers: the one in the middle, or the mean of the two in the
// middle. It is 0 without numbers.
func Median(numbers []float64) float64 {
	if len(numbers) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(numbers))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Spread writes ", ", the smallest and the largest of the numbers with a format such as %.1f. It is
// empty for fewer than two.
func Spread(format string, numbers []float64) string {
	if len(numbers) < 2 {
		return ""
	}
	return fmt.Sprintf(", "+format+" to "+format, slices.Min(numbers), slices.Max(numbers))
}
