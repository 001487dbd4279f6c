package timers

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

const sampleReply = "1795246719.5 1795246749.5 250000 1 1 2 2 2 0 1500 7 1795246720.5,0,1795246721 0,1 6f\n0 s\n3 c\n" +
	"1 7-0 1795246719.5 3 2 5.5 2 0 3\nidk\x00y-1 7-1 1795246719.5 9 0 5 2 3 0\nida\nb" +
	"2 4 1 0 1795246000.25\nida\n\x00b2 0 3 1 5\n\xff\xfe"

// limited is the flow control of sampleReply.
var limited = exchange.Flow{RateLimit: 2, RatePer: time.Second}

func TestParseReply(t *testing.T) {
	t.Parallel()
	r, apart, err := parseReply(sampleReply, &limited)
	require.False(t, apart)
	require.NoError(t, err)
	require.Equal(t, 30*time.Second, r.Remaining)
	require.Equal(t, time.UnixMilli(1795246719500).UTC(), r.Now)
	require.Equal(t, 250*time.Millisecond, r.Next)
	require.Equal(t, 1500*time.Microsecond, r.Held)
	require.Equal(t, 7, r.KeyHeld)
	require.Equal(t, "6f", r.Control)
	require.Equal(t, exchange.Token("1795246749.5"), r.Extended)
	require.True(t, r.Orphans)
	require.Equal(t, 1, r.Healed)
	require.Equal(t, []exchange.Refusal{{Index: 0, Reason: exchange.Superseded}, {Index: 3, Reason: exchange.Cancelled}}, r.Refused)
	require.Equal(t, []exchange.DeadLettered{
		{Index: 1, Entry: "7-0", At: r.Now, ID: "id", Claims: 3, Failures: 2, Activation: time.UnixMilli(5500).UTC(), Key: "k\x00y"},
		{
			Index: -1, Entry: "7-1", At: r.Now, ID: "id", Claims: 9, Activation: time.Unix(5, 0).UTC(),
			Reason: "never settled", Payload: []byte("a\nb"),
		},
	}, r.DeadLettered)
	require.Equal(t, "id", r.Leases[0].ID)
	require.Equal(t, "a\n\x00b", string(r.Leases[0].Payload))
	require.Empty(t, r.Leases[0].Fault)
	require.Equal(t, 3, r.Leases[1].Claims)
	require.NotEmpty(t, r.Leases[1].Fault)
	require.Equal(t, []int{0, 1}, r.KeyRuns)
	require.Equal(t, exchange.Charge{Topic: 1795246720.5}, r.Leases[0].Charge)
	require.Equal(t, exchange.Charge{Topic: 1795246721, Key: 1795246721}, r.Leases[1].Charge)
}

func TestEveryCutReplyIsError(t *testing.T) {
	t.Parallel()
	for i := range sampleReply {
		_, _, err := parseReply(sampleReply[:i], &limited)
		require.ErrorIs(t, err, scripts.ErrReply, "%q", sampleReply[:i])
	}
	_, _, err := parseReply(sampleReply+"x", &limited)
	require.ErrorIs(t, err, scripts.ErrReply)
}

func TestLeasesFollowOnlyEarlierOnesOfTheirReply(t *testing.T) {
	t.Parallel()
	for _, runs := range []string{"0", "0,2", "1,0", "0,1,1", "0,-1", "0,x", "0,", ""} {
		_, _, err := parseReply(strings.Replace(sampleReply, " 0,1 6f", " "+runs+" 6f", 1), &limited)
		require.ErrorIs(t, err, scripts.ErrReply, "%q", runs)
	}
}

// TestLeaseDoesNotKeepItsReply checks that a held lease does not retain the memory
// of its reply. Otherwise a peer that holds one lease of each reply would make the
// node retain all of them.
func TestLeaseDoesNotKeepItsReply(t *testing.T) { // not parallel: it measures the heap
	const replies, leases = 100, 500
	text := "1795246719.5 1795246749.5 250000 1 1 0 0 500 0 0 0 - - -\n" + strings.Repeat("2 500 1 0 1795246000.25\nid"+strings.Repeat("x", 500), leases)
	storetest.HoldsLittle(t, replies, leases, func() (*exchange.Reply, error) {
		r, _, err := parseReply(strings.Clone(text), &limited)
		return r, err
	})
}

func FuzzParseReply(f *testing.F) {
	f.Add(sampleReply)
	f.Add("1 2 -1 0 0 0 0 0 1 0 0 - - ?\n")
	f.Add("1 2 3 0 0 0 0 999999999 0 0 0 5,6 0,0 -\n1 1 1 1 1\nab")
	f.Fuzz(func(t *testing.T, text string) {
		r, _, err := parseReply(text, &limited)
		if err == nil && len(r.Leases)+len(r.Refused)+len(r.DeadLettered) > len(text) {
			t.Fatalf("%d leases, %d dead letters in %d bytes", len(r.Leases), len(r.DeadLettered), len(text))
		}
	})
}

func FuzzReadRecord(f *testing.F) {
	f.Add("l:1:0:1795246947.1737731:1795246977.5", 1795246977.5)
	f.Add("w:2:1:5:7:5:an error: with colons", 7.0)
	f.Fuzz(func(t *testing.T, text string, score float64) {
		if r, ok := readRecord(text, score); !ok && r != (leaseRecord{}) {
			t.Fatal("a record that Wakebell did not write must be empty")
		}
	})
}

func TestScores(t *testing.T) {
	t.Parallel()
	require.Equal(t, "1.000001", scripts.ScoreText(time.Unix(1, 1)))
	require.Equal(t, "-1.500000", scripts.ScoreText(time.Unix(-2, 5e8)))
	require.Equal(t, "1", scripts.DelayMicros(time.Nanosecond))
	require.Equal(t, "0", scripts.DelayMicros(-time.Hour))
	require.Equal(t, scripts.LastInstant, scripts.Instant(1e300))
	require.Equal(t, scripts.FirstInstant, scripts.Instant(-1e300))
	require.Equal(t, time.UnixMicro(1795246719123000).UTC(), scripts.Instant(1795246719.1229999))
}
