package recur

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Python writes whole numbers as floats, and values that JSON does not have.
func TestNumbersOfPython(t *testing.T) {
	t.Parallel()
	read := func(schedule string) (Entry, error) {
		return Read(Raw{Definition: []byte(`{"name":"n","task":"t","schedule":` + schedule + `}`)}, "n", nil)
	}
	for _, schedule := range []string{
		`{"__type__":"rrule","freq":3.0,"interval":2.0,"count":3.0,"byhour":[6.0,7.0],"byminute":0.0,"byweekday":[1.0,{"__type__":"weekday","wkday":3.0}],"dtstart":1767225600.0,"dtstart_tz":330.0,"until":1798761600.0,"until_tz":330.0}`,
		`{"__type__":"crontab","minute":[0.0,15.0],"hour":3.0}`,
	} {
		_, err := read(schedule)
		require.NoError(t, err, schedule)
	}
	for _, schedule := range []string{
		`{"__type__":"crontab","minute":0.5}`, `{"__type__":"rrule","freq":3,"interval":1.5}`, `{"__type__":"interval","every":NaN,"relative":false}`, `Infinity`,
	} {
		_, err := read(schedule)
		require.ErrorIs(t, err, ErrSyntax, schedule)
	}
	m, err := ReadMeta([]byte(`{"last_run_at":{"__type__":"datetime","year":2026.0,"month":1.0,"day":2.0,"timezone":19800.0},"total_run_count":7.0}`))
	require.NoError(t, err)
	require.Equal(t, int64(7), m.Runs)
	require.True(t, m.LastRunAt.Equal(time.Date(2026, 1, 1, 18, 30, 0, 0, time.UTC)))
}

// NaN and infinities in arguments survive a rewrite of the definition; the body of a
// timer is JSON, in which they are null.
func TestValuesThatJSONDoesNotHave(t *testing.T) {
	t.Parallel()
	const args = `[NaN,-Infinity,"NaN \" Infinity","a\"\u0000NaN"]`
	raw := Raw{Definition: []byte(`{"name":"n","task":"t","args":` + args + `,"kwargs":{"NaN":Infinity},"options":{"expires":60.0},"schedule":30.0,"enabled":true}`)}
	e, err := Read(raw, "n", nil)
	require.NoError(t, err)
	e.SetEnabled(false)
	require.Contains(t, string(e.Raw().Definition), `"args":`+args+`,"kwargs":{"NaN":Infinity},`)
	body, _ := e.Body()
	require.JSONEq(t, `{"args":[null,null,"NaN \" Infinity","a\"\u0000NaN"],"kwargs":{"NaN":null}}`, string(body))
	portable := Portable(raw.Definition)
	require.True(t, json.Valid(portable))
	require.Equal(t, string(raw.Definition), string(Native(portable)))
}

func FuzzPortable(f *testing.F) {
	f.Add([]byte(`{"a":[NaN,-Infinity,"NaN","\\"],"b":Infinity}`))
	f.Add([]byte(`"\u0000NaN`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		portable := Portable(raw)
		if json.Valid(raw) {
			require.Equal(t, string(raw), string(portable))
		}
		Native(portable)
		standard(portable)
	})
}
