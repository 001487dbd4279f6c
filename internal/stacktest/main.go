package stacktest

import (
	"fmt"
	"os"
	"testing"

	"github.com/wakebell/wakebell/internal/redistest"
)

// Main runs the tests of a package. A process that a test started from its own binary
// has one of the variables in its environment, and calls that function with its value
// instead.
func Main(m *testing.M, processes map[string]func(string) error) {
	for variable, run := range processes {
		if value := os.Getenv(variable); value != "" {
			if err := run(value); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	redistest.Waiting(4)
	redistest.Main(m)
}
