package usercode

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// ended is the reason of a handler that did not return and did not panic: it has called
// runtime.Goexit.
const ended = "handler ended its goroutine"

// PanicText returns the reason of a failure for what recover has returned, with the place of
// the panic: "panic: no such order at orders/handler.go:42". It is called by the function that
// was deferred, or by one that this calls. nil says that the goroutine ends without a panic.
func PanicText(reason any) string {
	if reason == nil {
		return ended
	}
	text := fmt.Sprintf("panic: %v", reason)
	if place := panicPlace(); place != "" {
		text += " at " + place
	}
	return text
}

// panicPlace returns the file and the line of the function that panicked: the first below
// the runtime's own, which begin with gopanic. Empty: the goroutine does not panic.
func panicPlace() string {
	var counters [64]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters[:])])
	panics := false
	for {
		frame, more := frames.Next()
		own := strings.HasPrefix(frame.Function, "runtime.")
		switch {
		case frame.Function == "runtime.gopanic":
			panics = true
		case panics && !own:
			return fmt.Sprintf("%s:%d", path.Join(path.Base(path.Dir(frame.File)), path.Base(frame.File)), frame.Line)
		}
		if !more {
			return ""
		}
	}
}
