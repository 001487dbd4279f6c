// Package argument makes the errors about arguments and configuration fields.
package argument

import (
	"fmt"
	"strconv"

	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Invalid returns an error that wraps wakebelltype.ErrInvalid, names the field and
// says why its value is refused.
func Invalid(field, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", wakebelltype.ErrInvalid, field, fmt.Sprintf(format, args...))
}

// Within returns an Invalid error unless low ≤ n ≤ high.
func Within[N ~int | ~int64](field string, n, low, high N) error {
	if n < low || n > high {
		return Invalid(field, "%v is not within %v and %v", n, low, high)
	}
	return nil
}

// maxShown is how many bytes of an input an error shows.
const maxShown = 64

// Quote quotes an input for an error message, and cuts it to 64 bytes.
func Quote(s string) string { return strconv.Quote(text.Clip(s, maxShown)) }
