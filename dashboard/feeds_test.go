package dashboard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/wakebelltype"
)

// The lateness of a topic is that of its last deliveries, and of no other events.
func TestLatenessIsOfTheLastDeliveries(t *testing.T) {
	t.Parallel()
	one := &feed{nodes: map[string]time.Time{}}
	f := &feeds{all: map[string]*feed{"t": one}}
	require.Zero(t, f.lateness("t"))
	require.Zero(t, f.lateness("other"))
	one.add(wakebelltype.Event{Kind: wakebelltype.EventDelivered, Lateness: time.Hour})
	one.add(wakebelltype.Event{Kind: wakebelltype.EventRetried, Lateness: time.Hour})
	for i := range maxLate {
		one.add(wakebelltype.Event{Kind: wakebelltype.EventDelivered, Lateness: time.Duration(maxLate-i) * time.Millisecond})
	}
	require.Equal(t, lateness{maxLate, 250 * time.Millisecond, 495 * time.Millisecond, 500 * time.Millisecond}, f.lateness("t"))
}
