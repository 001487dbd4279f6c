package recur

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A rule is shown as it was written, or as RFC 5545 writes it: not as it is stored.
func TestRRulesAreShownAsText(t *testing.T) {
	t.Parallel()
	for definition, want := range map[string]string{
		`{"__type__":"rrule","freq":1,"byweekday":[4],"bysetpos":[-1],"interval":1}`:                                    "rrule FREQ=MONTHLY;BYSETPOS=-1;BYDAY=FR",
		`{"__type__":"rrule","freq":3,"interval":2,"count":3,"byhour":[6,7],"dtstart":1767225600.0,"dtstart_tz":330.0}`: "rrule FREQ=DAILY;INTERVAL=2;COUNT=3;BYHOUR=6,7 from 2026-01-01T05:30:00+05:30",
		`{"__type__":"rrule","freq":99}`: `rrule {"__type__":"rrule","freq":99}`,
	} {
		var e Entry
		e.Definition.Schedule = []byte(definition)
		require.Equal(t, want, e.Rule())
	}
	var e Entry
	require.NoError(t, setRRule(&e, "DTSTART:20261127T150304Z\nRRULE:FREQ=MONTHLY;BYDAY=-1FR"))
	require.Equal(t, "rrule DTSTART:20261127T150304Z RRULE:FREQ=MONTHLY;BYDAY=-1FR", e.Rule())
}
