// Package queuekeys checks the names from which the keys of a queue are made. The
// store, the nodes and the network refuse the same names.
package queuekeys

import (
	"fmt"
	"strings"

	"github.com/wakebell/wakebell/wakebelltype"
)

// defaultSeparator separates the name of a queue from the purpose of a key.
const defaultSeparator = "::"

// Check checks the names of a queue; the error wraps [wakebelltype.ErrInvalid].
func Check(n wakebelltype.QueueKeys) error {
	n = WithDefaults(n)
	switch {
	case len(n.Name) > wakebelltype.MaxName:
		return fmt.Errorf("%w: queue: %d bytes, want 1 to %d", wakebelltype.ErrInvalid, len(n.Name), wakebelltype.MaxName)
	case strings.TrimSpace(n.Name) == "":
		return fmt.Errorf("%w: queue: the name is blank", wakebelltype.ErrInvalid)
	case strings.Contains(n.Name, "\x00"):
		return fmt.Errorf("%w: queue: the name has a NUL byte", wakebelltype.ErrInvalid)
	case strings.TrimSpace(n.Separator) == "" || len(n.Separator) > wakebelltype.MaxName:
		return fmt.Errorf("%w: queue: separator: blank or over %d bytes", wakebelltype.ErrInvalid, wakebelltype.MaxName)
	case strings.Contains(n.Name, n.Separator):
		return fmt.Errorf("%w: queue: the name %q has the separator %q in it, so that its keys could be another queue's",
			wakebelltype.ErrInvalid, n.Name, n.Separator)
	case n.DeadLetters != "" && strings.TrimSpace(n.DeadLetters) == "":
		return fmt.Errorf("%w: queue: the key of dead letters is blank", wakebelltype.ErrInvalid)
	}
	return nil
}

// WithDefaults returns n with the default separator, if it has none.
func WithDefaults(n wakebelltype.QueueKeys) wakebelltype.QueueKeys {
	if n.Separator == "" {
		n.Separator = defaultSeparator
	}
	return n
}
