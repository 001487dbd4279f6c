package wakebelltest_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltest"
)

// These are the types of the README's test.

type Invoice struct{ Cents int }

var Invoices = wakebell.NewTopic[Invoice]("invoices")

func charge(context.Context, wakebell.Timer[Invoice]) error { return nil }

func bill(ctx context.Context, c *wakebell.Client, id string, inv Invoice) error {
	_, err := Invoices.Schedule(ctx, c, inv, wakebell.ID(id), wakebell.In(72*time.Hour))
	return err
}

func TestChargedAfterThreeDays(t *testing.T) {
	cfg := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, charge)}}
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		require.NoError(t, bill(t.Context(), w.Client(), "inv-42", Invoice{Cents: 995}))
		require.Equal(t, 72*time.Hour, w.RequireUpcoming("invoices", "inv-42").In)

		w.Advance(72 * time.Hour) // all that is due on the way runs, in milliseconds
		require.Equal(t, wakebelltest.Acked, w.RequireDelivered("invoices", "inv-42").Outcome)
	})
}

// The README shows the test above.
func TestReadmeShowsThisTest(t *testing.T) {
	t.Parallel()
	shown := func(file string) string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		_, after, found := strings.Cut(string(text), "func TestChargedAfterThreeDays")
		require.True(t, found, file)
		test, _, found := strings.Cut(after, "\n}\n")
		require.True(t, found, file)
		return test
	}
	require.Equal(t, shown("readme_test.go"), shown("../README.md"))
}
