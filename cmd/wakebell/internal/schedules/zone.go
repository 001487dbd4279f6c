package schedules

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/recurring"
)

// zoneFlag adds --zone to commands that compute instants.
func zoneFlag(cmd *cobra.Command) {
	cmd.Flags().String("zone", "UTC", "time `zone` of crontabs without one, as of wakebell beat --zone; use the Celery app's")
}

// zoneNamed returns the zone of --zone.
func zoneNamed(name string) (*time.Location, error) {
	in, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, cli.Usagef("--zone: %q is not an IANA time zone such as Europe/Berlin", name)
	}
	return in, nil
}

// warnOfZone notes on stderr that the zone of a schedule's instants may be wrong.
func warnOfZone(ctx context.Context, a *cli.App, s recurring.Operator, name string) {
	if state, err := s.Get(ctx, name); err == nil && state.ZoneWarning != "" { // the command returns the error
		a.Notef("wakebell: warning: %s\n", state.ZoneWarning)
	}
}
