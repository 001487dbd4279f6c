package leasing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestSettingsHaveEverySetting checks that no setting is lost on its way to a poller and
// back.
func TestSettingsHaveEverySetting(t *testing.T) {
	t.Parallel()
	for _, row := range tuning.All {
		var s wakebelltype.Settings
		row.Set(&s, 7)
		require.Equal(t, s, leasing.SettingsOf(s).Public(), row.Name)
	}
}
