package transfer

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestImportCanBeRepeated(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture, n int) {
		if n > 1 {
			_, err := f.Divide(t.Context(), f.topic, n)
			require.NoError(t, err)
		}
		fill(t, f)
		text, _ := f.export(t, f.topic)
		o := wakebelltype.ImportOptions{Topic: f.topic + "-copy"}
		o.DryRun = true
		dry := f.loaded(t, text, o)
		used, err := f.Unused(t.Context(), o.Topic)
		require.NoError(t, err)
		require.True(t, used, "a dry run changes nothing")
		o.DryRun = false
		first := f.loaded(t, text, o)
		first.Marks, dry.Marks = 0, 0 // one that is in several shards counts once when it is stored
		require.Equal(t, first, dry)
		before, _ := f.export(t, o.Topic)
		second := f.loaded(t, text, o)
		require.Zero(t, second.Stored+second.Dead+second.Marks)
		require.EqualValues(t, 210, second.Existed)
		after, _ := f.export(t, o.Topic)
		require.Equal(t, withoutMarks(body(before)), withoutMarks(body(after)))

		o.Replace = true
		third := f.loaded(t, text, o)
		require.EqualValues(t, 209, third.Replaced)
		require.Zero(t, third.Stored+third.Dead)
		after, _ = f.export(t, o.Topic)
		require.Equal(t, withoutMarks(body(before)), withoutMarks(body(after)))
		f.requireDelivered(t, o.Topic)
	})
}

// TestReplacedTimerLosesItsLease imports over a timer that a handler has.
func TestReplacedTimerLosesItsLease(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	f.schedule(t, timers.Entry{ID: "x", Payload: []byte("exported")})
	text, _ := f.export(t, f.topic)
	f.schedule(t, timers.Entry{ID: "x", Payload: []byte("scheduled later")})
	streams, leases := f.claim(t, f.topic)
	f.loaded(t, text, wakebelltype.ImportOptions{Topic: f.topic})
	timer, err := f.Get(t.Context(), f.topic, "x")
	require.NoError(t, err)
	require.Equal(t, "scheduled later", string(timer.Payload), "it exists")
	f.loaded(t, text, wakebelltype.ImportOptions{Topic: f.topic, Replace: true})
	require.Len(t, streams[0].Settle(t, storetest.Verdict(exchange.Ack, leases[0][0])).Refused, 1)
	_, leases = f.claim(t, f.topic)
	require.Equal(t, "exported", string(leases[0][0].Payload))
}

// TestInterruptedImportContinues ends an import after some of its lines.
func TestInterruptedImportContinues(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	var entries []timers.Entry
	for i := range 5000 {
		entries = append(entries, timers.Entry{ID: fmt.Sprint(i), At: hour})
	}
	f.schedule(t, entries...)
	text, _ := f.export(t, f.topic)
	copied := f.topic + "-copy"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last wakebelltype.Imported
	var failed error
	read := bytes.NewReader([]byte(text))
	for i, err := range Import(ctx, f.Store, reader(func(p []byte) (int, error) {
		if read.Len() < len(text)/2 {
			cancel()
		}
		return read.Read(p)
	}), wakebelltype.ImportOptions{Topic: copied}, limit, sameName, movable) {
		last, failed = i, err
	}
	require.ErrorIs(t, failed, context.Canceled)
	require.False(t, last.Done)
	st, err := f.Stats(t.Context(), copied)
	require.NoError(t, err)
	require.Positive(t, st.Total)
	require.Less(t, st.Total, int64(5000))
	require.Equal(t, st.Total, last.Stored)
	require.Equal(t, st.Total, last.Line-1, "the first line is no timer")
	_, err = f.CancelAll(t.Context(), copied) // as if they were handled
	require.NoError(t, err)
	rest := f.loaded(t, text, wakebelltype.ImportOptions{Topic: copied, FromLine: last.Line + 1})
	require.EqualValues(t, 5000, last.Stored+rest.Stored)
}

type reader func(p []byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// TestBadLines imports files with a line that is wrong.
func TestBadLines(t *testing.T) {
	t.Parallel()
	const first = `{"type":"topic","version":1,"topic":"x","shards":1,"timers":2}` + "\n"
	const good = `{"type":"timer","id":"good","at":"2040-01-01T00:00:00Z"}` + "\n"
	for text, want := range map[string]string{
		"":                             "line 1: empty or cut off",
		"hello\n":                      "line 1: not the first line",
		good:                           "line 1: not the first line",
		`{"type":"topic","version":2}`: "line 1: version: 2, want 1",
		`{"type":"topic","version":1,"shards":0}`:                                               "line 1: shards: 0, want 1 to 256",
		`{"type":"topic","version":1,"shards":"1"}`:                                             "line 1: shards: a value of another type: string",
		`{"type":"topic","version":1,"topic":"x","shards":1,"settings":{"max_concurrent":"0"}}`: "line 1: settings: max_concurrent",
		first + good + "{":                                                                         "the file ends without its last line",
		first + good:                                                                               "the file ends without its last line",
		first + good + "x\n":                                                                       "line 3: not a JSON object",
		first + good + `{"type":"timer"}` + "\n":                                                   "line 3: id: 0 bytes, want 1 to 512",
		first + good + `{"type":"other"}` + "\n":                                                   `line 3: type: "other", want "timer"`,
		first + good + `{"type":"timer","id":5}` + "\n":                                            `line 3: id: want a string`,
		first + good + `{"type":"timer","id":"x","at":"soon"}` + "\n":                              "line 3: at: ",
		first + good + `{"type":"timer","id":"x","payload":"?"}` + "\n":                            "line 3: payload: illegal base64",
		first + good + `{"type":"timer","id":"x","claims":-1}` + "\n":                              "line 3: claims: -1, want 0 to 999999999",
		first + good + `{"type":"timer","id":"x","number":-1}` + "\n":                              "line 3: number: -1, want 0 to 999999999999999",
		first + good + `{"type":"timer","id":"x","key":"` + strings.Repeat("k", 513) + `"}` + "\n": "line 3: key: 513 bytes, want at most 512",
		first + good + `{"type":"timer","id":{"base64":"/w=="}}` + "\n":                            "line 3: id: not valid UTF-8",
		first + good + `{"type":"mark","id":"x","at":"2040-01-01T00:00:00Z","window_us":0}` + "\n": "line 3: window_us: 0, want at least 1",
		first + good + `{"type":"dead","id":"x","failures":-1}` + "\n":                             "line 3: failures: -1, want 0 to 999999999",
		first + good + `{"type":"end","timers":2}` + "\n":                                          "line 3: the file should have 2 timers",
		first + good + `{"type":"end","timers":1}` + "\n" + good:                                   "line 4: comes after the last line",
		first + good + strings.Repeat("x", 2<<20):                                                  "line 3: over ",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, redistest.Shared(t))
			last, err := f.load(t.Context(), text, wakebelltype.ImportOptions{Topic: f.topic})
			require.ErrorIs(t, err, wakebelltype.ErrInvalid)
			require.ErrorContains(t, err, want)
			require.False(t, last.Done)
			st, err := f.Stats(t.Context(), f.topic)
			require.NoError(t, err)
			require.Equal(t, strings.HasPrefix(text, first+good), st.Total == 1, "the lines before it are stored")
			require.Equal(t, st.Total, last.Stored)
			if strings.HasPrefix(want, "line 3") {
				require.EqualValues(t, 2, last.Line)
			}
		})
	}
}
