package topicfile_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/topicfile"
)

var bounds = topicfile.Bounds{
	ID: 512, Key: 512, Error: 1024, Payload: 1 << 16, Count: 999_999_999, Number: 999_999_999_999_999, Shards: 256,
	LastInstant: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
}

func instant() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		return time.UnixMicro(rapid.Int64Range(0, 2e15).Draw(t, "micros")).UTC()
	})
}

// text draws any bytes.
func text(least, most int) *rapid.Generator[topicfile.Text] {
	return rapid.Map(rapid.SliceOfN(rapid.Byte(), least, most), func(b []byte) topicfile.Text { return topicfile.Text(b) })
}

// TestLinesAreReadAsTheyWereWritten writes any lines and reads them.
func TestLinesAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var b bytes.Buffer
		first := topicfile.Topic{Topic: rapid.String().Draw(r, "topic"), At: instant().Draw(r, "at"), Shards: rapid.IntRange(1, 256).Draw(r, "shards"), Settings: map[string]string{"x": "y"}}
		w, err := topicfile.NewWriter(&b, first)
		require.NoError(r, err)
		var want []topicfile.Line
		for range rapid.IntRange(0, 20).Draw(r, "lines") {
			switch rapid.IntRange(0, 2).Draw(r, "type") {
			case 0:
				l := topicfile.Timer{
					Type: "timer", ID: topicfile.Text(rapid.StringN(1, 20, 512).Draw(r, "id")), At: instant().Draw(r, "at"), Key: text(0, 20).Draw(r, "key"),
					Number: rapid.Int64Range(0, bounds.Number).Draw(r, "number"), Due: instant().Draw(r, "due"),
					Claims: rapid.IntRange(0, 9).Draw(r, "claims"), Error: text(0, 50).Draw(r, "error"), Payload: rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(r, "payload"),
				}
				want = append(want, topicfile.Line{Timer: &l})
				require.NoError(r, w.Timer(l))
			case 1:
				l := topicfile.Dead{Type: "dead", ID: text(0, 20).Draw(r, "id"), Reason: text(0, 20).Draw(r, "reason"), At: instant().Draw(r, "at"), Payload: rapid.SliceOf(rapid.Byte()).Draw(r, "payload")}
				want = append(want, topicfile.Line{Dead: &l})
				require.NoError(r, w.Dead(l))
			case 2:
				l := topicfile.Mark{Type: "mark", ID: text(1, 20).Draw(r, "id"), At: instant().Draw(r, "at"), WindowUS: 1, Expires: instant().Draw(r, "expires")}
				want = append(want, topicfile.Line{Mark: &l})
				require.NoError(r, w.Mark(l))
			}
		}
		require.NoError(r, w.End())
		end := w.Counts()
		want = append(want, topicfile.Line{End: &end})

		f, err := topicfile.NewReader(&b, bounds)
		require.NoError(r, err)
		first.Type, first.Version = "topic", 1
		require.Equal(r, first, f.Topic)
		for i := range want {
			l, err := f.Next()
			require.NoError(r, err)
			require.Equal(r, want[i], l)
			require.EqualValues(r, i+2, f.At())
		}
		_, err = f.Next()
		require.ErrorIs(r, err, io.EOF)
	})
}

// TestFileThatWasCutOffIsRecognised cuts a file at each byte.
func TestFileThatWasCutOffIsRecognised(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w, err := topicfile.NewWriter(&b, topicfile.Topic{Topic: "x", Shards: 1})
	require.NoError(t, err)
	for _, id := range []string{"a", "Zürich", "c"} {
		require.NoError(t, w.Timer(topicfile.Timer{ID: topicfile.Text(id), Payload: []byte("x")}))
	}
	require.NoError(t, w.End())
	whole := b.String()
	for n := range whole {
		f, err := topicfile.NewReader(strings.NewReader(whole[:n]), bounds)
		for err == nil {
			_, err = f.Next()
		}
		if n == len(whole)-1 { // only the last end of a line is missing
			require.ErrorIs(t, err, io.EOF)
		} else {
			require.NotErrorIs(t, err, io.EOF, "%d", n)
		}
	}
}

// FuzzReader reads any file: it ends with an error or with the end of the file.
func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"type":"topic","version":1,"topic":"x","shards":1}` + "\n" + `{"type":"timer","id":"x"}` + "\n" + `{"type":"end","timers":1}`))
	f.Add([]byte(`{"type":"topic","version":1,"shards":1}` + "\n" + `{"type":"dead","id":{"base64":"/w=="}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := topicfile.NewReader(bytes.NewReader(data), bounds)
		for err == nil {
			_, err = r.Next()
		}
	})
}
