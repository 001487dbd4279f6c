package timers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// oddNumbers are texts that a parser of Lua or of Go reads as a number, and
// numbers whose text changes on the way.
var oddNumbers = []string{
	"", ".", "-", "e5", "nan", "NaN", "-nan", "inf", "+inf", "-inf", "Inf", "infinity", "0x10", "0X1P+4", " 5", "5 ", "5\n",
	"5\x00", "5\x00x", "1_000", "010", "-010", "00", "0", "-0", "+5", "5.", ".5", "0.5", "-1.5", "1.2.3", "1e5", "1E5", "1e+5",
	"1e-5", "1e+20", "1e", "1e+", "1e999", "1e9999", "1e+0005", "1.7976931348623157e+308", "1795246947.1737731",
	"99999999999999999999", "1e5e5", "1,5", "٣", "1d5", "5f", "999999999", "1000000000",
}

// someNumbers are the odd ones and random texts of the characters of numbers.
func someNumbers() []string {
	const alphabet = "00123456789.e+-xin fa_\x00"
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same texts in each run
	all := append([]string(nil), oddNumbers...)
	for range 2000 {
		text := make([]byte, random.IntN(7))
		for i := range text {
			text[i] = alphabet[random.IntN(len(alphabet))]
		}
		all = append(all, string(text))
	}
	return all
}

// callLua evaluates an expression of Lua over s for each text and returns the
// results.
func callLua(t *testing.T, f *fixture, expression string, all []string) []string {
	t.Helper()
	script := redis.NewScript(scripts.Prelude() + `
local out = {}
for i, s in ipairs(ARGV) do
  local x = ` + expression + `
  out[i] = x and text(x) or 'none'
end
return out`)
	args := make([]any, len(all))
	for i := range all {
		args[i] = all[i]
	}
	keys := []string{f.key.Hint}
	found, err := script.Eval(t.Context(), f.rdb, keys, args...).StringSlice()
	require.NoError(t, err)
	require.Len(t, found, len(all))
	return found
}

// TestNumbersAreReadAlike checks that Lua and Go accept the same numbers. A number
// that Lua accepts and Go rejects would stop its topic, because Go rejects the
// whole reply of the exchange.
func TestNumbersAreReadAlike(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		all := someNumbers()
		for i, found := range callLua(t, f, "number(s)", all) {
			want, err := scripts.ReadScore(all[i])
			require.Equal(t, err == nil, found != "none", "%q is %s in Lua: %v", all[i], found, err)
			if err != nil {
				continue
			}
			got, err := scripts.ReadScore(lowered(found))
			require.NoError(t, err, "%q is %s in Lua", all[i], found)
			if math.IsInf(want, 0) { // the embedded Redis reads infinity as the largest number
				require.GreaterOrEqual(t, math.Abs(got), math.MaxFloat64, "%q", all[i])
			} else if want != got { // a Lua without exponents computes them
				require.InEpsilon(t, want, got, 1e-12, "%q", all[i])
			}
		}
		for i, found := range callLua(t, f, "counted(s) and tonumber(s)", all) {
			want, ok := scripts.ReadCount(all[i])
			if !ok {
				require.Equal(t, "none", found, "%q", all[i])
				continue
			}
			require.Equal(t, fmt.Sprint(want), found, "%q", all[i])
		}
	})
}

// lowered writes infinity as Redis does. The Lua of the embedded Redis writes it
// differently.
func lowered(text string) string {
	switch text {
	case "+Inf":
		return "inf"
	case "-Inf":
		return "-inf"
	default:
		return text
	}
}

// oddRecords are lease records with a text in each of their fields; %s is the score
// that was written.
func oddRecords(text string) []string {
	return []string{
		"l:" + text + ":0:1:%s", "l:1:" + text + ":1:%s", "l:1:0:" + text + ":%s", "w:1:1:1:%s:" + text,
		"w:0:0:1:%s:~" + text, "w:1:1:1:%s:" + text + "~" + text, "l:1:0:1:" + text, text + ":1:0:1:%s",
	}
}

func TestRecordsAreReadAlike(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		const score = "1795246947.5"
		var all []string
		for _, text := range append(oddNumbers, "l", "w", "x", "lease", "~", ":") {
			for _, format := range oddRecords(text) {
				all = append(all, filled(format, score))
			}
		}
		for i, found := range callLua(t, f, "current(s, '"+score+"') and 1", all) {
			_, ok := readRecord(all[i], 1795246947.5)
			require.Equal(t, ok, found == "1", "%q", all[i])
		}
	})
}

func filled(format, score string) string {
	const place = "%s"
	for i := 0; i+len(place) <= len(format); i++ {
		if format[i:i+len(place)] == place {
			return format[:i] + score + format[i+len(place):]
		}
	}
	return format
}

// TestUnreadableRecordsStopNothing checks that timers with unreadable lease records
// are handled as if they had none, and that no command about them fails.
func TestUnreadableRecordsStopNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		var names []string
		for _, text := range oddNumbers {
			for range oddRecords(text) {
				names = append(names, fmt.Sprint("timer-", len(names)))
			}
		}
		write := func() {
			n := 0
			for _, text := range oddNumbers {
				for _, format := range oddRecords(text) {
					score := f.rdb.ZScore(ctx, f.key.Timeline, names[n]).Val()
					require.NoError(t, f.rdb.HSet(ctx, f.key.Leases, names[n], filled(format, fmt.Sprintf("%.17g", score))).Err())
					n++
				}
			}
		}
		f.due(t, names...)
		write()
		_, err := f.Stats(ctx, f.topic)
		require.NoError(t, err)
		for next, first := Cursor(""), true; first || next != ""; first = false {
			_, next, err = f.List(ctx, f.topic, Filter{After: next})
			require.NoError(t, err)
		}
		_, _, err = f.List(ctx, f.topic, Filter{Leased: true})
		require.NoError(t, err)
		for i, id := range names {
			f.get(t, id)
			entry := Entry{ID: id, Payload: []byte("x"), In: time.Minute, Policy: wakebelltype.PolicyDebounce, MaxDelay: time.Hour}
			switch i % 3 {
			case 0:
				f.schedule(t, entry)
			case 1:
				_, err = f.Reschedule(ctx, f.topic, id, time.Time{}, time.Minute)
			case 2:
				_, err = f.RunNow(ctx, f.topic, id)
			}
			require.NoError(t, err)
		}
		f.due(t, names...)
		write()
		claimAll := func() (leases []exchange.Lease) {
			for range len(names)/claimMost + 1 {
				leases = append(leases, f.Claim(t, len(names)).Leases...)
			}
			return leases
		}
		leases := claimAll()
		require.Len(t, leases, len(names))

		write() // while they are leased
		for at, l := range leases {
			s := storetest.Verdict([]exchange.Verdict{exchange.Release, exchange.Nack, exchange.DeadLetter, exchange.Ack}[at%4], l)
			s.Reason = "reason"
			require.Empty(t, f.Settle(t, s).Refused)
		}
		require.Len(t, claimAll(), (len(names)+1)/2)
	})
}

// TestScoresFarAway checks that a score too far in the future for an integer of µs
// stops neither the exchange nor the peek, and no earlier timer.
func TestScoresFarAway(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		for _, score := range []float64{math.Inf(1), math.MaxFloat64, 1e300, 1e20, 1e13} {
			f := f.on(fmt.Sprint(f.topic, score))
			z := redis.Z{Score: score, Member: "far"}
			require.NoError(t, f.rdb.ZAdd(t.Context(), f.key.Timeline, z).Err())
			require.NoError(t, f.rdb.HSet(t.Context(), f.key.Payloads, "far", "x").Err())
			require.Empty(t, f.Claim(t, 1).Leases)
			_, err := f.src.Peek(t.Context())
			require.NoError(t, err)
			f.due(t, "near")
			require.Equal(t, []string{"near"}, storetest.IDs(f.Claim(t, 2).Leases))
			_, _, err = f.List(t.Context(), f.topic, Filter{})
			require.NoError(t, err)
			_, err = f.RunNow(t.Context(), f.topic, "far")
			require.NoError(t, err)
		}
	})
}

// TestUnreadableMarkOfOnce checks that an unreadable mark of Once counts as none.
func TestUnreadableMarkOfOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		for i, text := range []string{"nan 5", "0x10 5", "x", "", " 5"} {
			entry := Entry{ID: fmt.Sprint(i), Payload: []byte("x"), In: time.Hour, Once: time.Minute}
			require.NoError(t, f.rdb.Set(t.Context(), f.key.Mark(entry.ID), text, 0).Err())
			require.Equal(t, wakebelltype.OutcomeCreated, f.schedule(t, entry)[0].Outcome, "%q", text)
			require.NoError(t, f.rdb.Set(t.Context(), f.key.Mark(entry.ID), text, 0).Err())
			_, err := f.Reschedule(t.Context(), f.topic, entry.ID, time.Time{}, time.Minute)
			require.NoError(t, err)
		}
	})
}
