package main

import (
	"math"
	"slices"
)

// median of numbers in any order; NaN of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// quantile of sorted numbers: the least that a share q of them does not exceed.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)]
}

// medianRatio is the median of the quotients of two lists, round by round: what
// slows the machine down in a round slows both.
func medianRatio(above, below []float64) float64 {
	var quotients []float64
	for i := range min(len(above), len(below)) {
		if below[i] != 0 {
			quotients = append(quotients, above[i]/below[i])
		}
	}
	return median(quotients)
}
