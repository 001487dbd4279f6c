package delivery_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// poison is an error whose methods panic if it is nil.
type poison struct{ text string }

func (p *poison) Error() string { return p.text }

// knotted is an error whose Unwrap panics.
type knotted struct{}

func (knotted) Error() string { return "knotted" }
func (knotted) Unwrap() error { panic("no end") }

func TestErrorWhoseMethodsPanicFailsItsDeliveryAlone(t *testing.T) {
	t.Parallel()
	var null *poison
	for name, test := range map[string]struct {
		err  error
		says string
	}{
		"alone":    {null, "panic in Error(): "},
		"rejected": {wakebell.Reject(null), "panic in Error(): "},
		"joined":   {errors.Join(errors.New("x"), null), "panic in Error(): "},
		"unwrap":   {knotted{}, "panic in Unwrap(), Is() or As(): no end"},
	} {
		for _, batch := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				stacktest.Virtually(t, func(t *testing.T) {
					rdb, _ := redistest.Embedded(t)
					topic := wakebell.NewTopic[string]("t")
					verdict := func(id string) error {
						if id == "bad" {
							return test.err
						}
						return nil
					}
					h := wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error { return verdict(timer.ID) }, wakebell.MaxAttempts(1))
					if batch {
						h = wakebell.HandleBatch(topic, func(_ context.Context, timers []wakebell.Timer[string]) error {
							e := wakebell.BatchError{}
							for _, timer := range timers {
								e[timer.ID] = verdict(timer.ID)
							}
							return e
						}, wakebell.MaxAttempts(1))
					}
					sys := stacktest.Build(t, rdb, wakebell.Config{Handlers: []wakebell.Handler{h}})
					stacktest.Launch(t, sys)
					for _, id := range []string{"good", "bad"} {
						_, err := topic.Schedule(t.Context(), sys.Client(), "x", wakebell.ID(id))
						require.NoError(t, err)
					}
					<-time.After(10 * time.Second)
					require.EqualValues(t, 1, sys.Counters()["t"].Acked)
					require.Zero(t, sys.Counters()["t"].Crashed)
					for letter, err := range sys.Client().DeadLetters(t.Context(), "t", wakebelltype.DeadFilter{}, wakebelltype.Page{}) {
						require.NoError(t, err)
						require.Equal(t, "bad", letter.ID)
						require.Contains(t, letter.Reason, test.says)
						return
					}
					t.Fatal("no dead letter")
				})
			})
		}
	}
}
