package outbox

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/relay"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
)

// recorder is an Execer that records the statements.
type recorder struct {
	queries []string
	args    [][]any
	err     error
}

func (r *recorder) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	r.queries, r.args = append(r.queries, query), append(r.args, args)
	return nil, r.err
}

// body returns the request of the n-th row of the first statement.
func (r *recorder) body(t *testing.T, n int, into proto.Message) {
	t.Helper()
	require.NoError(t, proto.Unmarshal(r.args[0][7*n+5].([]byte), into))
}

var topic = wakebell.NewTopic[string]("t")

func TestStatementsOfDialects(t *testing.T) {
	t.Parallel()
	const insert = `INSERT INTO "app"."box" (request_key, stream, kind, target, timer, body, created_at) VALUES `
	for dialect, want := range map[Dialect]string{
		PostgreSQL: "WITH added AS (" + insert + "($1, $2, $3, $4, $5, $6, $7), ($8, $9, $10, $11, $12, $13, $14)) SELECT pg_notify('app.box', '')",
		MySQL:      strings.ReplaceAll(insert, `"`, "`") + "(?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?)",
		SQLite:     strings.ReplaceAll(insert, `"app".`, "") + "(?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?)",
	} {
		table := "app.box"
		if dialect == SQLite {
			table = "box"
		}
		o, err := New(nil, dialect, Config{Table: table})
		require.NoError(t, err)
		var tx recorder
		require.NoError(t, o.Cancel(t.Context(), &tx, "t", "a", "b"))
		require.Equal(t, []string{want}, tx.queries)
		steps, err := o.Migrations()
		require.NoError(t, err)
		for i, step := range steps {
			require.Equal(t, i+1, step.Version)
			require.NotContains(t, step.SQL, "{")
			require.Contains(t, step.SQL, "CREATE TABLE IF NOT EXISTS ")
			require.NotEmpty(t, step.statements())
		}
	}
}

func TestLargeBatchesAreDivided(t *testing.T) {
	t.Parallel()
	o, err := New(nil, SQLite, Config{})
	require.NoError(t, err)
	var many, large recorder
	require.NoError(t, o.Cancel(t.Context(), &many, "t", strings.Split(strings.Repeat("x ", 250)+"x", " ")...))
	require.Len(t, many.queries, 3)
	body := strings.Repeat("x", 600<<10)
	require.NoError(t, o.Schedule(t.Context(), &large, topic.Draft(body), topic.Draft(body)))
	require.Len(t, large.queries, 2)
	require.NoError(t, o.Schedule(t.Context(), &recorder{}))
}

func TestDelayBecomesInstant(t *testing.T) {
	t.Parallel()
	o, err := New(nil, SQLite, Config{})
	require.NoError(t, err)
	now := time.Unix(1_700_000_000, 0)
	o.now = func() time.Time { return now }
	var tx recorder
	require.NoError(t, o.Schedule(t.Context(), &tx, topic.Draft("x", wakebell.In(time.Hour)), topic.Draft("x"), topic.Draft("x", wakebell.ID("d"), wakebell.Debounce(time.Minute, 0))))
	var in, atOnce, debounced messages.ScheduleRequest
	tx.body(t, 0, &in)
	require.Equal(t, now.Add(time.Hour), in.GetAt().AsTime().In(now.Location()))
	tx.body(t, 1, &atOnce)
	require.Nil(t, atOnce.GetWhen())
	tx.body(t, 2, &debounced)
	require.Equal(t, time.Minute, debounced.GetDebounce().GetDelay().AsDuration())
}

// A message without a deduplication key must not be published twice by a late retry.
func TestMessagesGetDeduplicationKey(t *testing.T) {
	t.Parallel()
	o, err := New(nil, SQLite, Config{})
	require.NoError(t, err)
	own := queue.New[string]("own", queue.DeduplicationWindow(time.Minute), queue.DeduplicateBy(func(s string) string { return s }))
	var tx recorder
	require.NoError(t, o.Publish(t.Context(), &tx, queue.New[string]("q", queue.FreeKeyOnFailure()).Draft("x"), own.Draft("x")))
	var made, given messages.PublishRequest
	tx.body(t, 0, &made)
	require.True(t, strings.HasPrefix(made.GetMessages()[0].GetKey(), "outbox:"))
	require.Equal(t, 24*time.Hour, made.GetWindow().AsDuration())
	require.False(t, made.GetFreesKeys())
	require.NotEmpty(t, made.GetMessages()[0].GetTail())
	tx.body(t, 1, &given)
	require.Equal(t, "x", given.GetMessages()[0].GetKey())
	require.Equal(t, time.Minute, given.GetWindow().AsDuration())
}

func TestRowsOfTimerShareStream(t *testing.T) {
	t.Parallel()
	o, err := New(nil, SQLite, Config{})
	require.NoError(t, err)
	var tx recorder
	require.NoError(t, o.Schedule(t.Context(), &tx, topic.Draft("x", wakebell.ID("a")), topic.Draft("x", wakebell.ID("b"))))
	require.NoError(t, o.Cancel(t.Context(), &tx, "t", "a"))
	const stream = 1
	require.Equal(t, tx.args[0][stream], tx.args[1][stream])
	require.NotEqual(t, tx.args[0][stream], tx.args[0][7+stream])
	require.NotEqual(t, tx.args[0][0], tx.args[1][0], "each row has a key of its own")
}

func TestInvalidRequestsWriteNothing(t *testing.T) {
	t.Parallel()
	o, err := New(conntest.WithoutRedis(t, connection.Config{PayloadLimit: 1000}), SQLite, Config{})
	require.NoError(t, err)
	largest, err := New(conntest.WithoutRedis(t, connection.Config{PayloadLimit: 16 << 20}), SQLite, Config{})
	require.NoError(t, err)
	var tx recorder
	ctx := t.Context()
	long := strings.Repeat("x", 513)
	for want, err := range map[string]error{
		"timer 1: invalid argument: name: empty": o.Schedule(ctx, &tx, topic.Draft("x"), wakebell.NewTopic[string]("").Draft("x")),
		"timer 0: invalid argument: body":        o.Schedule(ctx, &tx, topic.Draft(strings.Repeat("x", 1001))),
		"timer 0: invalid argument: In, At":      o.Schedule(ctx, &tx, topic.Draft("x", wakebell.In(1), wakebell.In(1))),
		"timer 0: invalid argument: request":     o.Schedule(ctx, &tx, topic.Draft("x", wakebell.ID("\xff"))),
		"timer 1: invalid argument: id: empty":   o.Cancel(ctx, &tx, "t", "a", ""),
		"timer 0: invalid argument: id: 513":     o.Cancel(ctx, &tx, "t", long),
		"message 0: invalid argument":            o.Publish(ctx, &tx, queue.New[string]("q", queue.KeySeparator("")).Draft("x")),
		"message 0: invalid argument: name":      o.Publish(ctx, &tx, queue.New[string](long).Draft("x")),
		"timer 0: invalid argument: body: 16777": largest.Schedule(ctx, &tx, topic.Draft(strings.Repeat("x", 16<<20-100))), // no room for what the relay adds
		"invalid argument: tx":                   o.Cancel(ctx, nil, "t", "a"),
	} {
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, wakebell.ErrInvalid)
	}
	require.Empty(t, tx.queries)
	failing := &recorder{err: errors.New("disk full")}
	require.EqualError(t, o.Cancel(ctx, failing, "t", "a"), "insert into wakebell_outbox: disk full")
}

func TestConfigurationsAreChecked(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"1a", "a b", "a;b", `a"b`, "a.b.c", ".a", "a.", strings.Repeat("x", 49)} {
		_, err := New(nil, PostgreSQL, Config{Table: table})
		require.ErrorIs(t, err, wakebell.ErrInvalid, table)
	}
	_, err := New(nil, SQLite, Config{Table: "a.b"})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	_, err = New(nil, 0, Config{})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	_, err = New(conntest.WithoutRedis(t, connection.Config{PayloadLimit: 17 << 20}), SQLite, Config{})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	for _, cfg := range []RelayConfig{{BatchSize: 501}, {BatchSize: -1}, {PollInterval: 1}, {Timeout: 1}} {
		_, err := cfg.withDefaults()
		require.ErrorIs(t, err, wakebell.ErrInvalid, "%+v", cfg)
	}
}

// A row waits behind one of its stream that another relay holds, or that is deferred.
func TestRowsDoNotOvertake(t *testing.T) {
	t.Parallel()
	b := &batch{blocked: map[int64][]int64{}}
	for seq := range int64(8) {
		b.rows = append(b.rows, claimedRow{seq: seq})
	}
	b.removeOvertaking(map[int64]predecessor{
		1: {seq: 0}, 2: {seq: 1}, // behind rows of the batch
		4: {seq: 100, retryAt: 0}, 5: {seq: 4}, // behind a row of another relay
		6: {seq: 101, retryAt: 2000}, 7: {seq: 6}, // behind a deferred row
	}, 1000)
	var kept []int64
	for _, r := range b.rows {
		kept = append(kept, r.seq)
	}
	require.Equal(t, []int64{0, 1, 2, 3}, kept)
	require.True(t, b.Contended())
	require.Equal(t, map[int64][]int64{2000: {6, 7}}, b.blocked)
}

func TestChangesOfBatch(t *testing.T) {
	t.Parallel()
	o, err := New(nil, SQLite, Config{})
	require.NoError(t, err)
	o.now = func() time.Time { return time.UnixMicro(0) }
	b := &batch{store: &store{Outbox: o}, parking: map[int64][]int64{}, blocked: map[int64][]int64{}, rows: []claimedRow{
		{seq: 1}, {seq: 2}, {seq: 3}, {seq: 4, stream: "s", attempts: 2}, {seq: 5, stream: "s"}, {seq: 6}, {seq: 7},
	}}
	changes := b.changes([]relay.Result{
		{Verdict: relay.Relayed},
		{Verdict: relay.Relayed},
		{Verdict: relay.Rejected, Err: errors.New("bad\x00\xff")},
		{Verdict: relay.Deferred, Err: errors.New("full")},
		{Verdict: relay.Blocked},
		{},
		{Verdict: relay.Relayed},
	})
	require.Equal(t, []change{
		{"UPDATE {table} SET attempts = attempts + 1, failed_at = ?, error = ? WHERE seq = ?", []any{int64(0), "bad��", int64(3)}},
		{"UPDATE {table} SET attempts = attempts + 1, retry_at = ?, error = ? WHERE seq = ?", []any{int64(4_000_000), "full", int64(4)}},
		{"UPDATE {table} SET retry_at = ? WHERE seq IN (?)", []any{int64(4_000_000), int64(5)}},
		{"DELETE FROM {table} WHERE seq IN (?, ?, ?, ?)", []any{int64(1), int64(2), int64(7), int64(7)}},
	}, changes)
	require.Equal(t, time.Minute, deferral(1000, false))
	require.Equal(t, 5*time.Second, deferral(1000, true))
}

// A relay that parks a lane locks it before the rows that get its number.
func TestLaneIsLockedBeforeItsRows(t *testing.T) {
	t.Parallel()
	o, err := New(nil, MySQL, Config{})
	require.NoError(t, err)
	b := &batch{store: &store{Outbox: o}, parking: map[int64][]int64{-4: {9}}, blocked: map[int64][]int64{}, rows: []claimedRow{
		{seq: 1, lane: -5}, {seq: 2, lane: -5},
	}}
	locked := map[any]bool{}
	for _, c := range b.changes([]relay.Result{{Verdict: relay.Parked, Err: errors.New("full")}, {Verdict: relay.Parked}}) {
		switch {
		case strings.HasPrefix(c.text, "INSERT INTO {parked}"):
			locked[c.args[0]] = true
		case strings.HasPrefix(c.text, "UPDATE {parked}"):
			locked[c.args[len(c.args)-1]] = true
		default:
			require.True(t, locked[c.args[0]], "%+v", c)
		}
	}
	require.Len(t, locked, 2)
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dialect Dialect
		version string
		old     bool
	}{
		{PostgreSQL, "15.14 (Debian 15.14-0+deb12u1)", false},
		{PostgreSQL, "9.6.24", true},
		{MySQL, "8.0.36", false},
		{MySQL, "5.7.44-log", true},
		{MySQL, "10.11.14-MariaDB-0+deb12u2", false},
		{MySQL, "10.5.23-MariaDB", true},
		{SQLite, "3.46.1", false},
		{SQLite, "unknown", false},
	} {
		o, err := New(nil, c.dialect, Config{})
		require.NoError(t, err)
		_, old := o.tooOld(c.version)
		require.Equal(t, c.old, old, c.version)
	}
}

// TestJoinedTimersAreOneRow checks which timers of a call are relayed together, and that they
// may be larger than one timer.
func TestJoinedTimersAreOneRow(t *testing.T) {
	t.Parallel()
	o, err := New(conntest.WithoutRedis(t, connection.Config{PayloadLimit: 1 << 20}), SQLite, Config{})
	require.NoError(t, err)
	o.now = func() time.Time { return time.Unix(1_700_000_000, 0) }
	large := topic.Draft(strings.Repeat("x", 600<<10), wakebell.ID("large"))
	drafts := append([]wakebell.Draft{topic.Draft("alone", wakebell.ID("alone"))}, wakebell.Batch(large, topic.Draft("b", wakebell.ID("b")), topic.Draft(strings.Repeat("x", 600<<10), wakebell.ID("c"))).
		Then(wakebell.NewTopic[string]("reports").Draft("", wakebell.ID("r"), wakebell.In(time.Hour)))...)
	drafts = append(drafts, topic.Draft("later", wakebell.ID("later"), wakebell.PartOf("other", "join")))
	var tx recorder
	require.NoError(t, o.Schedule(t.Context(), &tx, drafts...))
	var args []any
	for _, of := range tx.args {
		args = append(args, of...)
	}
	require.Len(t, args, 14)
	require.Equal(t, []any{"schedule", "t", "alone"}, args[2:5])
	require.Equal(t, []any{"batch", "reports", "r"}, args[9:12])
	request, err := requestOf("batch", "k", args[12].([]byte))
	require.NoError(t, err)
	batch := request.(*messages.ScheduleBatchRequest)
	require.Equal(t, "outbox:k", batch.GetKey())
	var ids []string
	for _, m := range batch.GetTimers() {
		ids = append(ids, m.GetId())
	}
	require.Equal(t, []string{"large", "b", "c", "r", "later"}, ids)
	require.Equal(t, int64(1_700_003_600), batch.GetTimers()[3].GetAt().GetSeconds())

	many := make([]wakebell.Draft, 30)
	for i := range many {
		many[i] = topic.Draft(strings.Repeat("x", 600<<10))
	}
	err = o.Schedule(t.Context(), &tx, wakebell.Batch(many...).Then(topic.Draft("", wakebell.In(time.Hour)))...)
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	require.ErrorContains(t, err, "timers with joins: ")
	small := make([]wakebell.Draft, 1000)
	for i := range small {
		small[i] = topic.Draft("")
	}
	err = o.Schedule(t.Context(), &tx, wakebell.Batch(small...).Then(topic.Draft("", wakebell.In(time.Hour)))...)
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	require.ErrorContains(t, err, "timers: 1001 with joins")
}
