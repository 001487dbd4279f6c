package argument_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestErrorsNameFieldAndBound(t *testing.T) {
	err := argument.Within("LeaseTTL", time.Millisecond, time.Second, time.Minute)
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	require.EqualError(t, err, "invalid argument: LeaseTTL: 1ms is not within 1s and 1m0s")
	require.NoError(t, argument.Within("n", 3, 1, 3))
}

func TestQuote(t *testing.T) {
	require.Equal(t, `"a\n"`, argument.Quote("a\n"))
	require.Equal(t, `"`+strings.Repeat("x", 64)+`…"`, argument.Quote(strings.Repeat("x", 65)))
	require.Equal(t, `"`+strings.Repeat("x", 63)+`…"`, argument.Quote(strings.Repeat("x", 63)+"éé"), "a character is not cut")
}
