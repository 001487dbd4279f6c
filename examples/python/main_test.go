package main

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
	"github.com/wakebell/wakebell/internal/redistest"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestPython(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	p := program.Start(t, "WAKEBELL_REDIS=redis://"+redistest.SharedAddr(t))
	require.Equal(t, "waiting for orders", p.Line())

	// The peer's broker.publish of README.md writes this payload.
	_, err := rdb.TxPipelined(t.Context(), func(tx redis.Pipeliner) error {
		now := float64(time.Now().UnixMicro()) / 1e6
		tx.ZAdd(t.Context(), "timers_timeline:orders", redis.Z{Score: now, Member: "ord-42"})
		tx.HSet(t.Context(), "timers_payloads:orders", "ord-42", python(t, "dict", "ord-42"))
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "ord-42: order 42 is due", p.Line())

	// The subscriber of README.md would read this payload.
	require.Equal(t, python(t, "str", "rc-42"), rdb.HGet(t.Context(), "timers_payloads:receipts", "rc-42").Val())
	due := time.UnixMicro(int64(rdb.ZScore(t.Context(), "timers_timeline:receipts", "rc-42").Val() * 1e6))
	require.WithinDuration(t, time.Now().Add(time.Hour), due, time.Minute)

	p.Terminate()
	require.Equal(t, "\n", p.Rest())
	require.Zero(t, rdb.Exists(t.Context(), "timers_timeline:orders", "timers_payloads:orders").Val(), "Python finds it done")
}

// python returns the payload of a case of the golden file, with another id of the same
// length.
func python(t *testing.T, name, id string) string {
	t.Helper()
	text, err := os.ReadFile("../../internal/envelope/testdata/golden-timers.json")
	require.NoError(t, err)
	var golden struct {
		Cases []struct {
			Name       string `json:"name"`
			TimerID    string `json:"timer_id"`
			PayloadHex string `json:"payload_hex"`
		} `json:"cases"`
	}
	require.NoError(t, json.Unmarshal(text, &golden))
	for _, c := range golden.Cases {
		if c.Name == name {
			require.Len(t, id, len(c.TimerID))
			payload, err := hex.DecodeString(c.PayloadHex)
			require.NoError(t, err)
			return strings.ReplaceAll(string(payload), c.TimerID, id)
		}
	}
	require.FailNow(t, "no such case", name)
	return ""
}
