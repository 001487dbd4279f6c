//go:build !race

package baseline

const raced = false
