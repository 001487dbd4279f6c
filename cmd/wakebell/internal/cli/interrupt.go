package cli

import (
	"context"
	"errors"
	"fmt"
)

// ErrInterrupted ends a command that a signal stops before it is done.
var ErrInterrupted = errors.New("interrupted")

// SoFar adds to the error of a command how much was done before it.
func SoFar(err error, done int64, what string) error {
	if done == 0 && !errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%d %s: %w", done, what, err)
}
