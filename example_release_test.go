package wakebell_test

import (
	"errors"
	"fmt"

	"github.com/wakebell/wakebell"
)

func ExampleRelease() {
	err := wakebell.Release(errors.New("the printer is not connected"))
	fmt.Println(err, wakebell.IsReleased(err))
	// Output:
	// released: the printer is not connected true
}
