package wakebelltest_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// spy is a testing.TB that records failures and messages.
type spy struct {
	testing.TB
	mu       sync.Mutex
	failed   bool
	said     strings.Builder
	cleanups []func()
}

// failing runs a test that must fail, with its cleanups, and returns its messages.
func failing(t testing.TB, test func(t *spy)) string {
	t.Helper()
	s := &spy{TB: t}
	done := make(chan struct{})
	go func() { // Fatalf ends it
		defer close(done)
		defer s.cleanUp()
		test(s)
	}()
	<-done
	if !s.failed {
		t.Error("it did not fail")
	}
	return s.said.String()
}

func (s *spy) cleanUp() {
	for len(s.cleanups) > 0 {
		last := len(s.cleanups) - 1
		f := s.cleanups[last]
		s.cleanups = s.cleanups[:last]
		f()
	}
}

func (s *spy) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said.WriteString(text + "\n")
}

func (s *spy) Helper()                  {}
func (s *spy) Context() context.Context { return s.TB.Context() }
func (s *spy) Cleanup(f func())         { s.cleanups = append(s.cleanups, f) }
func (s *spy) Output() io.Writer        { return io.Discard }
func (s *spy) Failed() bool             { return s.failed }
func (s *spy) Log(args ...any)          { s.say(fmt.Sprint(args...)) }

func (s *spy) Errorf(format string, args ...any) {
	s.failed = true
	s.say(fmt.Sprintf(format, args...))
}

func (s *spy) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}

func (s *spy) Fatal(args ...any) {
	s.Errorf("%s", fmt.Sprint(args...))
	runtime.Goexit()
}
