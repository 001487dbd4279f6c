package demo

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// tone is the colour of a line.
type tone string

const (
	plain tone = ""
	info  tone = "\x1b[36m"
	good  tone = "\x1b[32m"
	warn  tone = "\x1b[33m"
	bad   tone = "\x1b[31m"
	faint tone = "\x1b[2m"
	reset      = "\x1b[0m"
)

// narrator prints the events of the demo with the time since its start.
type narrator struct {
	out    io.Writer
	colour bool
	start  time.Time
	lock   sync.Mutex
}

func newNarrator(out io.Writer, colour bool) *narrator {
	return &narrator{out: out, colour: colour, start: time.Now()}
}

func (n *narrator) begin() { n.start = time.Now() }

func (n *narrator) elapsed() time.Duration { return time.Since(n.start) }

// until waits until the given time since the start.
func (n *narrator) until(ctx context.Context, at time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(at - n.elapsed()):
		return nil
	}
}

// tell prints a line about the timer id; an empty id is for none.
func (n *narrator) tell(t tone, id, format string, args ...any) {
	n.lock.Lock()
	defer n.lock.Unlock()
	at := fmt.Sprintf("%5.1fs", n.elapsed().Seconds())
	text := fmt.Sprintf(format, args...)
	if id != "" {
		id = fmt.Sprintf("%-7s ", id)
	}
	// A write error shows again when the table is written.
	_, _ = fmt.Fprintf(n.out, "%s  %s%s\n", n.paint(faint, at), n.paint(t, id), n.paint(t, text))
}

func (n *narrator) paint(t tone, text string) string {
	if !n.colour || t == plain || text == "" {
		return text
	}
	return string(t) + text + reset
}
