package output

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/cheggaaa/pb/v3"
)

const (
	// progressAfter is how long a command runs before it shows its progress.
	progressAfter = time.Second
	// progressEvery is the time between two states of a progress line.
	progressEvery = 200 * time.Millisecond
)

// Progress is a line on a terminal that shows how far a command is, with the rate and
// the time left. It appears after a second. A nil Progress shows nothing.
type Progress struct {
	w      io.Writer
	screen Screen

	mu       sync.Mutex
	bar      *pb.ProgressBar
	shown    bool
	ended    bool
	next     time.Time
	began    time.Time
	complete bool // the total is known
	timed    bool // nothing is counted
}

// NewProgress returns the progress of total things, of an unknown number if total is 0.
// With -1 it shows only for how long it lasts. What describes the work: "cancel". On a screen that is not a terminal it
// returns nil.
func NewProgress(w io.Writer, screen Screen, what string, total int64) *Progress {
	if screen.Columns == 0 {
		return nil
	}
	p := &Progress{w: w, screen: screen, began: time.Now(), complete: total > 0, timed: total < 0}
	p.bar = pb.New64(max(total, 0)).Set(pb.Static, true).SetWriter(io.Discard).SetWidth(screen.Columns - 1)
	p.bar.SetTemplateString(what + p.template()).Start()
	_ = p.bar.String() // the rate is measured from here
	p.next = p.began.Add(progressAfter)
	return p
}

// template returns the fields that fit the screen.
func (p *Progress) template() string {
	switch {
	case p.timed:
		return `  {{etime . "%s"}}`
	case !p.complete:
		return `  {{counters . "%s of %s" "%[1]s"}}  {{speed . "%s/s" ""}}`
	case p.screen.Columns < 50:
		return `  {{percent . "%.0f %%"}}  {{rtime . "%s left" "" ""}}`
	default:
		return `  {{percent . "%.0f %%"}}  {{bar . "[" "=" ">" " " "]"}}  {{counters . "%s of %s"}}  {{speed . "%s/s" ""}}  {{rtime . "%s left" "" ""}}`
	}
}

// Add adds n things that are done.
func (p *Progress) Add(n int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(p.bar.Current() + n)
}

// Set sets the number of things that are done.
func (p *Progress) Set(n int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(n)
}

// set sets the number. The caller holds mu.
func (p *Progress) set(n int64) {
	if total := p.bar.Total(); p.complete && n > total {
		p.bar.SetTotal(n) // more were added meanwhile
	}
	p.bar.SetCurrent(n)
	if now := time.Now(); !p.ended && !now.Before(p.next) {
		p.next = now.Add(progressEvery)
		p.shown = true
		line := ansi.Truncate(strings.TrimRight(p.bar.String(), " "), p.screen.Columns-1, "…")
		_, _ = fmt.Fprint(p.w, "\r", line, ansi.EraseLineRight) // stderr: an error has no place to be reported
	}
}

// Clear removes the line until the next change, before other output.
func (p *Progress) Clear() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *Progress) clear() {
	if p.shown {
		p.shown = false
		_, _ = fmt.Fprint(p.w, "\r", ansi.EraseLineRight)
	}
}

// End removes the line for good.
func (p *Progress) End() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.clear()
		p.ended = true
		p.bar.Finish()
	}
}
