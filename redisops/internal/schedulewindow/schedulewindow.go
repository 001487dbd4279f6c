// Package schedulewindow decides whether the schedules of a topic wait for each other.
package schedulewindow

import "time"

// Window decides for one topic. The zero value is closed. It has no lock.
//
// Callers that come by themselves, such as requests, lose nothing but some milliseconds.
// Callers that wait for one schedule before they begin the next lose throughput. So the
// window opens only above busyRate, and closes as soon as fewer calls come than before:
// a single caller loses three windows, and then as many again after a pause that doubles
// from minPause to maxPause.
type Window struct {
	open     bool
	from     time.Time // when the period began over which calls are counted
	calls    int       // in the period
	rate     float64   // calls a second before it opened
	short    int       // windows in a row in which few calls came
	openedAt time.Time
	pause    time.Duration // after the last closure
	closedAt time.Time
}

const (
	// Width is for how long calls wait while a window is open. It makes a twentieth of the
	// calls at 2,000 a second.
	Width = 10 * time.Millisecond
	// busyRate is the number of calls a second from which a window opens; ten come in it.
	busyRate = 1000
	// A period has at least periodCalls and takes at least minPeriod; if it takes more than
	// maxPeriod, the topic is not busy.
	periodCalls = 512
	minPeriod   = 100 * time.Millisecond
	maxPeriod   = time.Second
	// keptRate is the part of the rate that must stay while a window is open; one period
	// of calls that come by chance differs from the next by 6 %.
	keptRate = 0.85
	// keptCalls is the part of the calls that one window must bring at least, and
	// maxShort how many windows in a row may bring fewer.
	keptCalls = 0.5
	maxShort  = 3
	minPause  = time.Second
	maxPause  = time.Minute
	// soundFor is how long a window must have been open for the next pause to be short.
	soundFor = 10 * time.Second
)

// Count counts a call, and reports whether it waits for others.
func (w *Window) Count(now time.Time) (waits bool) {
	passed := now.Sub(w.from)
	w.calls++
	switch {
	case passed > maxPeriod:
		*w = Window{pause: w.pause, closedAt: w.closedAt}
		w.from, w.calls = now, 1
	case w.calls > periodCalls && passed >= minPeriod:
		w.judge(now, float64(w.calls-1)/passed.Seconds())
		w.from, w.calls = now, 1
	}
	return w.open
}

// judge opens or closes the window after a period with the given rate.
func (w *Window) judge(now time.Time, rate float64) {
	switch {
	case !w.open:
		if rate >= busyRate && now.Sub(w.closedAt) >= w.pause {
			w.open, w.rate, w.openedAt, w.short = true, rate, now, 0
		}
	case rate < keptRate*w.rate:
		w.shut(now)
	}
}

// Gathered notes how many calls waited until the end of a window.
func (w *Window) Gathered(now time.Time, calls int) {
	if !w.open {
		return
	}
	if float64(calls) >= max(2, keptCalls*w.rate*Width.Seconds()) {
		w.short = 0
	} else if w.short++; w.short == maxShort {
		w.shut(now)
	}
}

func (w *Window) shut(now time.Time) {
	if now.Sub(w.openedAt) >= soundFor {
		w.pause = 0
	}
	w.pause = min(max(2*w.pause, minPause), maxPause)
	w.open, w.closedAt, w.from, w.calls = false, now, now, 0
}
