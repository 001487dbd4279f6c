package leasing

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/division"
)

// TestIdleTopicsAreSmall checks what a node with thousands of idle topics holds for each. Go
// allocates a core with 8 bytes more, in steps: the next one is 128 bytes larger.
func TestIdleTopicsAreSmall(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, reflect.TypeFor[Core]().Size()+8, uintptr(1408))
	require.LessOrEqual(t, reflect.TypeFor[Stream]().Size(), uintptr(240))
	require.LessOrEqual(t, reflect.TypeFor[division.Member]().Size(), uintptr(144))
}

// TestIdleTopicsShareSettings checks that an override which changes nothing copies no settings,
// and that one which does leaves those of the node as they are.
func TestIdleTopicsShareSettings(t *testing.T) {
	t.Parallel()
	m, _ := idle(t)
	own := &Settings{MaxConcurrent: 3, LeaseTTL: 1, PollingInterval: 1, MaxPollingInterval: 1}
	m.core.Apply(m.now, own, false)
	m.core.OverrideRead(m.now, Override{Apply: func(*Settings) {}}, nil)
	require.Same(t, own, m.core.Settings)
	m.core.OverrideRead(m.now, Override{Apply: func(s *Settings) { s.MaxConcurrent = 5 }}, nil)
	require.Equal(t, 5, m.core.MaxConcurrent)
	require.Equal(t, 3, own.MaxConcurrent)
	m.core.OverrideRead(m.now, Override{}, nil)
	require.Same(t, own, m.core.Settings)
}
