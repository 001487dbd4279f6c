// Package usercode calls what users made, such as the methods of their errors and the
// handlers of their logs, where a panic must not end more than the delivery that it concerns.
package usercode

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Text returns the text of err, or one that says with what Error panicked. A nil err has
// none.
func Text(err error) (text string) {
	if err == nil {
		return ""
	}
	defer func() {
		if reason := recover(); reason != nil {
			text = Panicked("Error()", reason).Error()
		}
	}()
	return err.Error()
}

// Panicked is the error of a delivery for a panic in a method of its handler's error.
func Panicked(method string, reason any) error { return fmt.Errorf("panic in %s: %v", method, reason) }

// Called returns the error of a call, or, if it panics, one that says so. What names the
// call in a sentence.
func Called(what string, call func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = NewPanic(what, reason, debug.Stack())
		}
	}()
	return call()
}

// Panic is the error of a call that panicked.
type Panic struct {
	error
	Stack []byte
}

// NewPanic returns the error for the reason of a panic that was recovered.
func NewPanic(what string, reason any, stack []byte) *Panic {
	return &Panic{Panicked(what, reason), stack}
}

// Unwrap returns what Panicked has returned.
func (p *Panic) Unwrap() error { return p.error }

// unlike is a type that no error has.
type unlike struct{ error }

// Checked returns err if its text and the errors that it wraps can be read, and otherwise
// an error that says which method panicked.
func Checked(err error) (checked error) {
	if err == nil {
		return nil
	}
	method := "Error()"
	defer func() {
		if reason := recover(); reason != nil {
			checked = Panicked(method, reason)
		}
	}()
	_ = err.Error()
	method = "Unwrap(), Is() or As()"
	none := &unlike{}
	_ = errors.Is(err, none)
	_ = errors.As(err, &none)
	return err
}
