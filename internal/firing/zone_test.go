package firing

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/recur"
)

func (w *world) meta(name string) string {
	return w.rdb.HGet(w.t.Context(), "redbeat:"+name, "meta").Val()
}

// A beat writes the last run in its zone, as RedBeat does, because a Python beat that
// takes over computes in it. An operator without a zone keeps the one that is stored.
func TestLastRunIsWrittenInZoneOfBeat(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		kolkata, err := recur.LoadZone("Asia/Kolkata")
		require.NoError(t, err)
		w.python("p", 60)
		stop := w.engine(func(c *Config) { c.Zone = kolkata })
		w.advance(70 * time.Second)
		require.Contains(t, w.meta("p"), `"timezone":19800.0`)
		require.Contains(t, w.meta("p"), w.began.Add(time.Minute).In(kolkata).Format(`"hour":3,"minute":4,`))
		stop()
		manual := Manual{Store: w.store, Maker: Maker{Store: w.store, Limit: 1 << 20}}
		_, err = manual.RunNow(t.Context(), "p")
		require.NoError(t, err)
		require.Contains(t, w.meta("p"), `"timezone":19800.0`)
	})
}

// Beats whose zones differ are reported: one reads what the other has written.
func TestBeatsWithDifferentZonesAreReported(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, zone := range []string{"Asia/Kolkata", "UTC"} {
			in, err := recur.LoadZone(zone)
			require.NoError(t, err)
			var logged bytes.Buffer
			w.rdb.HSet(t.Context(), "redbeat:c", "definition", `{"name":"c","task":"topic","schedule":{"__type__":"crontab"},"enabled":true}`)
			w.rdb.ZAdd(t.Context(), "redbeat::schedule", redis.Z{Score: 0, Member: "redbeat:c"})
			stop := w.engine(func(c *Config) { c.Zone, c.Log = in, slog.New(slog.NewTextHandler(&logged, nil)) })
			w.advance(70 * time.Second)
			stop()
			require.Equal(t, zone == "UTC", strings.Contains(logged.String(), "seem to differ in their time zones"), zone)
		}
	})
}

// A message has the values of Python that JSON does not have, as a Python beat sends
// them.
func TestCeleryMessageHasValuesThatJSONDoesNotHave(t *testing.T) {
	t.Parallel()
	e, err := recur.Read(recur.Raw{Definition: []byte(
		`{"name":"n","task":"t","args":[NaN],"kwargs":{"a":-Infinity},"options":{"priority":5.0},"schedule":30}`)}, "n", time.UTC)
	require.NoError(t, err)
	run, err := celeryRun(&e, time.Unix(0, 0), "x", nil)
	require.NoError(t, err)
	var m celeryMessage
	require.NoError(t, json.Unmarshal(run.Payload, &m))
	body, err := base64.StdEncoding.DecodeString(m.Body)
	require.NoError(t, err)
	require.Equal(t, `[[NaN],{"a":-Infinity},{"callbacks":null,"chain":null,"chord":null,"errbacks":null}]`, string(body))
	require.Equal(t, "[NaN]", m.Headers["argsrepr"])
	require.Equal(t, "celery\x06\x163", run.Queue)
}
