package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBeatFires(t *testing.T) {
	b := setup(t)
	beat := b.start(b.keyed("beat", "--health", "127.0.0.1:0")...)
	beat.says("node runs")
	beat.eventually(func() bool { code, _ := beat.health("/readyz"); return code == http.StatusOK })
	b.fine(b.keyed("schedules", "put", "tick", "-t", "TOPIC", "--every", "50ms")...)
	lines := beat.lines(3)
	for i, line := range lines[:3] {
		require.Equal(t, "tick", line["name"])
		require.EqualValues(t, i+1, line["run"])
		due, err := time.Parse(time.RFC3339Nano, line["due"].(string))
		require.NoError(t, err)
		fired, err := time.Parse(time.RFC3339Nano, line["fired_at"].(string))
		require.NoError(t, err)
		require.False(t, fired.Before(due))
	}
	require.Zero(t, beat.stop())
	require.NotContains(t, beat.err.String(), "BADKEY")
}

func TestBeatSendsToCelery(t *testing.T) {
	b := setup(t)
	prefix, ctx := b.topic+":", t.Context()
	require.NoError(t, b.rdb.HSet(ctx, prefix+"send", "definition", `{"name":"send","task":"tasks.add","args":[2,3],"kwargs":{"k":1},`+
		`"options":{"queue":"`+b.topic+`","priority":3},"schedule":{"__type__":"interval","every":3600.0,"relative":false},"enabled":true}`).Err())
	require.NoError(t, b.rdb.Do(ctx, "ZADD", prefix+":schedule", 5, prefix+"send").Err())
	beat := b.start(b.keyed("beat", "--celery", "--take-lock")...)
	require.Equal(t, "send", beat.lines(1)[0]["name"])
	require.Equal(t, int64(1), b.rdb.LLen(ctx, b.topic+"\x06\x163").Val())
	b.fine(b.keyed("schedules", "run-now", "send", "--celery")...)
	require.Equal(t, int64(2), b.rdb.LLen(ctx, b.topic+"\x06\x163").Val())
}
