package wakebelltest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltest"
)

type invoice struct {
	Number string
	secret string // not encoded
}

var invoices = wakebell.NewTopic[invoice]("invoices")

func TestTimerIsTimerThatHandlerReceives(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	timer := wakebelltest.Timer(t, invoices, invoice{"42", "pin"}, wakebell.ID("inv-42"), wakebell.At(at),
		wakebell.Header("x-tenant", "acme"), wakebell.CorrelationID("order-7"))
	require.Equal(t, invoice{Number: "42"}, timer.Body, "as it is encoded and decoded")
	require.JSONEq(t, `{"Number":"42"}`, string(timer.Raw))
	require.Equal(t, "inv-42", timer.ID)
	require.Equal(t, "invoices", timer.Topic)
	require.Equal(t, "order-7", timer.CorrelationID)
	require.Equal(t, "application/json", timer.ContentType)
	require.Equal(t, map[string]string{"x-tenant": "acme"}, timer.Headers.Map())
	require.Equal(t, at, timer.Activation)
	require.Zero(t, timer.Lateness())
	require.Equal(t, 1, timer.Attempt)
	require.Zero(t, timer.Failures)
}

func TestLeaseRecordsAndEnds(t *testing.T) {
	t.Parallel()
	timer := wakebelltest.Timer(t, invoices, invoice{})
	lease := wakebelltest.LeaseOf(timer.Meta)
	require.NoError(t, timer.Extend(t.Context()))
	settled, _ := lease.Settled()
	require.False(t, settled)
	bad := wakebell.Reject(errors.New("bad"))
	require.NoError(t, timer.Settle(t.Context(), bad))
	settled, verdict := lease.Settled()
	require.True(t, settled)
	require.Equal(t, bad, verdict)
	require.Equal(t, 1, lease.Extensions())
	require.ErrorIs(t, timer.Extend(t.Context()), wakebell.ErrSettled)
	require.ErrorIs(t, timer.Settle(t.Context(), nil), wakebell.ErrSettled)

	lost := wakebelltest.Timer(t, invoices, invoice{})
	wakebelltest.LeaseOf(lost.Meta).End(wakebell.ErrSuperseded)
	require.ErrorIs(t, lost.Extend(t.Context()), wakebell.ErrSuperseded)
	require.ErrorIs(t, lost.Settle(t.Context(), nil), wakebell.ErrSuperseded)
	require.Nil(t, wakebelltest.LeaseOf(wakebell.Meta{}))
}

func TestTimerFailsTestIfScheduleWouldRefuse(t *testing.T) {
	t.Parallel()
	said := failing(t, func(t *spy) {
		wakebelltest.Timer(t, invoices, invoice{}, wakebell.In(1), wakebell.In(2))
	})
	require.Contains(t, said, `a timer of "invoices"`)
	require.Contains(t, said, "In, At, Debounce")
}
