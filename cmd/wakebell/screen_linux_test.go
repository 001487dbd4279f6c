package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

// onScreen runs a command on a terminal of a width, and returns what it wrote.
func (b *bundle) onScreen(columns int, args ...string) (code int, written string) {
	b.t.Helper()
	person, program := openTerminal(b.t)
	require.NoError(b.t, pty.Setsize(program, &pty.Winsize{Rows: 40, Cols: uint16(columns)}))
	seen := &buffer{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(seen, person) // ends with an error when the program closes its end
	}()
	code = run(b.t.Context(), b.args(args), program, program, program)
	require.NoError(b.t, program.Close())
	<-read
	return code, seen.String()
}

var styles = regexp.MustCompile("\x1b\\[[0-9;]*m")

// shown returns the lines that a terminal shows after it got text, without styles. A
// line that is wider than the terminal is wrapped.
func shown(columns int, text string) []string {
	lines, column := []string{""}, 0
	for text = styles.ReplaceAllString(text, ""); text != ""; {
		last := []rune(lines[len(lines)-1])
		switch rest, erased := strings.CutPrefix(text, "\x1b[K"); {
		case erased:
			text, lines[len(lines)-1] = rest, string(last[:min(column, len(last))])
			continue
		case text[0] == '\r':
			column = 0
		case text[0] == '\n':
			lines, column = append(lines, ""), 0
		default:
			r := []rune(text)[0]
			if column == columns {
				lines, column, last = append(lines, ""), 0, nil
			}
			if column < len(last) {
				last[column] = r
			} else {
				last = append(last, r)
			}
			lines[len(lines)-1] = string(last)
			column++
			text = text[len(string(r)):]
			continue
		}
		text = text[1:]
	}
	return lines
}

// people fills a Redis with topics, timers, dead letters and a queue.
func (b *bundle) people(letters int) {
	b.t.Helper()
	ctx := b.t.Context()
	b.fine("schedule", "-t", "invoices", "--id", "inv-2031-000001", "--in", "3h", "--text", "hi")
	b.fine("schedule", "-t", "invoices", "--id", "inv-"+strings.Repeat("0123456789", 5), "--in", "20d")
	b.fine("schedule", "-t", "invoices", "--id", "inv-2031-000002", "--at", time.Now().Add(-5*time.Hour).Format(time.RFC3339))
	b.fine("retune", "-t", "invoices", "--max-concurrent", "2", "--lease-ttl", "1m")
	b.fine("schedule", "-t", "reports.monthly.of-the-finance-team", "--id", "r", "--in", "1h")
	b.fine("pause", "-t", "reports.monthly.of-the-finance-team", "--by", "ann", "--reason", "the warehouse is being moved to another data centre")
	since := float64(time.Now().Add(-4 * time.Hour).Unix())
	require.NoError(b.t, b.rdb.HSet(ctx, "timers_control:reports.monthly.of-the-finance-team", "paused", since).Err())
	payload, err := b.rdb.HGet(ctx, "timers_payloads:invoices", "inv-2031-000001").Bytes()
	require.NoError(b.t, err)
	for i := range letters {
		require.NoError(b.t, b.rdb.XAdd(ctx, &redis.XAddArgs{Stream: "timers_dead:mail", ID: fmt.Sprintf("%d-0", 1_700_000_000_000+i), Values: map[string]any{
			"id": fmt.Sprintf("mail-%04d", i), "payload": payload, "claims": 25, "failures": 25, "reason": "smtp: connection refused",
			"activation": "1700000000", "at": "1700000000",
		}}).Err())
	}
	require.NoError(b.t, b.rdb.SAdd(ctx, "timers_topics", "mail").Err())
	require.NoError(b.t, b.rdb.SAdd(ctx, "timers_queues", "mail-out").Err())
	require.NoError(b.t, b.rdb.LPush(ctx, "mail-out::pending", "hi").Err())
}

// goldenScreen compares lines with a file of testdata.
func goldenScreen(t *testing.T, name string, lines []string) {
	t.Helper()
	text := strings.Join(lines, "\n")
	path := filepath.Join("testdata", "screens", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

// measured matches a finding of doctor whose text depends on the machine, with the lines
// that continue it.
var measured = regexp.MustCompile(`(?m)^(good|warn|bad) +(reachable|version|memory|clock|nodes +invoices:) .*\n( .*\n)*`)

// overdue matches for how long the timer of five hours ago waits by now.
var overdue = regexp.MustCompile(`for 5h\d+m\d+s`)

// A terminal gets colours, unless NO_COLOR or --color says otherwise.
func TestColours(t *testing.T) { // not parallel: it sets a variable
	b := &bundle{t: t, topic: "invoices", redis: "redis://" + redistest.Start(t).Addr}
	b.fine("schedule", "-t", "invoices", "--id", "a", "--in", "1h")
	coloured := func(args ...string) bool {
		code, written := b.onScreen(80, append([]string{"doctor"}, args...)...)
		require.LessOrEqual(t, code, 1, written)
		return styles.MatchString(written)
	}
	t.Setenv("NO_COLOR", "")
	require.True(t, coloured())
	require.False(t, coloured("--color", "never"))
	t.Setenv("NO_COLOR", "1")
	require.False(t, coloured())
	require.True(t, coloured("--color", "always"))
}

// The tables of a terminal fit its width.
func TestScreens(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	b := &bundle{t: t, topic: "invoices", redis: "redis://" + server.Addr, rdb: server.Client(t)}
	b.people(3)
	for _, columns := range []int{60, 80, 200} {
		t.Run(strconv.Itoa(columns), func(t *testing.T) {
			b := &bundle{t: t, topic: b.topic, redis: b.redis, rdb: b.rdb}
			var screens []string
			for _, args := range [][]string{{"topics"}, {"stats"}, {"ls", "-t", "invoices"}, {"dead", "ls", "-t", "mail"}, {"doctor"}} {
				code, written := b.onScreen(columns, args...)
				require.LessOrEqual(t, code, 1, written) // no node handles the due timers, which doctor finds bad
				require.Equal(t, args[0] == "doctor", code == 1, written)
				lines := shown(columns, written)
				if args[0] == "doctor" {
					lines = strings.Split(measured.ReplaceAllString(strings.Join(lines, "\n"), ""), "\n")
				}
				screens = append(append(screens, "$ wakebell "+strings.Join(args, " ")), lines...)
			}
			for i := range screens {
				screens[i] = overdue.ReplaceAllString(screens[i], "for 5h0m0s")
			}
			goldenScreen(t, strconv.Itoa(columns)+".txt", screens)
		})
	}
}

// A redrive shows its progress on one line, between the lines that it prints, and then
// what it did.
func TestProgressOnScreen(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{40, 60, 80, 200} {
		t.Run(strconv.Itoa(columns), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			b := &bundle{t: t, topic: "mail", redis: "redis://" + server.Addr, rdb: server.Client(t)}
			b.people(150)
			code, written := b.onScreen(columns, "dead", "redrive", "-t", "mail", "--all", "--yes", "--rate", "75")
			require.Zero(t, code, written)
			took := regexp.MustCompile(`in [0-9.]+m?s\b`)
			lines := shown(columns, took.ReplaceAllString(written, "in 2s"))
			goldenScreen(t, fmt.Sprintf("redrive_%d.txt", columns), lines[max(len(lines)-6, 0):])
			progress := regexp.MustCompile(`\r(redrive .*?)\x1b\[K`).FindAllStringSubmatch(written, -1)
			require.NotEmpty(t, progress, "%q", written)
			for _, line := range progress {
				require.Less(t, len([]rune(line[1])), columns)
				require.Regexp(t, `^redrive  \d+ %`, line[1])
				if columns >= 60 {
					require.Regexp(t, `\[=*>? *\]  \d+ of 150`, line[1])
				}
			}
		})
	}
}
