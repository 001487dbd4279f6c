// Package usercode calls the methods of errors that users made where a panic must not
// end more than the delivery that it concerns.
package usercode

import (
	"errors"
	"fmt"
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
