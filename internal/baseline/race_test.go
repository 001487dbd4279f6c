//go:build race

package baseline

const raced = true
