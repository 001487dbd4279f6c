//go:build !race

package simulate

const plans = 5
