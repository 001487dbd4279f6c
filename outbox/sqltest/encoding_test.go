//go:build unix

package sqltest

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/queue"
)

// Names, bodies and errors may have any letters, also where the database or the connection has an
// encoding without them.
func TestPostgreSQLEncodings(t *testing.T) {
	t.Parallel()
	s := postgresql(t)
	t.Run("", func(t *testing.T) { testEncodings(t, s) })
}

func testEncodings(t *testing.T, s server) {
	db := s.open(t)
	for encoding, timer := range map[string]string{"UTF8": letters, "SQL_ASCII": letters, "LATIN1": escaped, "EUC_JP": escaped} {
		_, err := db.ExecContext(t.Context(), fmt.Sprintf("CREATE DATABASE %s ENCODING '%s' TEMPLATE template0", encoding, encoding))
		require.NoError(t, err)
		of := s
		of.dsn = strings.ReplaceAll(s.dsn, "dbname=postgres", "dbname="+strings.ToLower(encoding))
		for _, options := range []string{"", " client_encoding=UTF8", " client_encoding=UTF8 default_query_exec_mode=simple_protocol"} {
			connected := of
			connected.dsn += options
			t.Run(encoding+options, func(t *testing.T) {
				t.Parallel()
				testLetters(t, newWorld(t, connected), timer)
			})
		}
	}
}

// A connection to MariaDB may have a character set without some letters.
func TestMariaDBCharacterSets(t *testing.T) {
	t.Parallel()
	s := mariadb(t)
	t.Run("", func(t *testing.T) {
		for charset, timer := range map[string]string{"utf8mb4": letters, "utf8mb3": "é€日?\ufffd", "ascii": "?????"} {
			connected := s
			connected.dsn += "?charset=" + charset
			t.Run(charset, func(t *testing.T) {
				t.Parallel()
				testLetters(t, newWorld(t, connected), timer)
			})
		}
	})
}

const (
	letters = "é€日😀\x00"
	escaped = `\u{e9}\u{20ac}\u{65e5}\u{1f600}\u{fffd}`
)

func testLetters(t *testing.T, w *world, timer string) {
	t.Helper()
	w.topic = wakebell.NewTopic[string](redistest.Name(t) + "é日")
	refused := wakebell.NewTopic[string](redistest.Name(t) + "é日")
	require.NoError(t, w.rdb.Set(t.Context(), "timers_timeline:"+refused.Name(), "not a sorted set", 0).Err())
	q := queue.New[string](redistest.Name(t) + "é日")
	w.commit(t, func(tx *sql.Tx) {
		require.NoError(t, w.box.Schedule(t.Context(), tx, w.topic.Draft("broken", wakebell.ID(letters), wakebell.In(time.Hour))))
	})
	_, err := w.db.ExecContext(t.Context(), w.rebind("UPDATE {table} SET body = ?"), []byte{0xff, 0xff})
	require.NoError(t, err)
	w.commit(t, func(tx *sql.Tx) {
		require.NoError(t, w.box.Schedule(t.Context(), tx, w.topic.Draft(letters, wakebell.ID(letters), wakebell.In(time.Hour))))
		require.NoError(t, w.box.Schedule(t.Context(), tx, refused.Draft("x", wakebell.ID(letters), wakebell.In(time.Hour))))
		require.NoError(t, w.box.Publish(t.Context(), tx, q.Draft(letters)))
	})
	w.relay(t, w.system(t), quick())
	require.Eventually(t, func() bool {
		s := w.stats(t)
		return s.Waiting == 1 && s.Deferred == 1 && s.Failed == 1
	}, patience, 10*time.Millisecond)
	require.Equal(t, map[string]string{letters: letters}, w.timers(t))
	require.Equal(t, strings.ReplaceAll(timer, "\x00", "\ufffd"), w.failed(t)[0].Timer)
	require.NoError(t, w.rdb.Del(t.Context(), "timers_timeline:"+refused.Name()).Err())
	w.awaitRelayed(t)
}
