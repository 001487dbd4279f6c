package forecast

import "time"

// waits finds out what waits if at most so many are started in a minute: as in a queue that
// is filled and emptied minute by minute. Nil: nothing waits for a minute or longer.
func (l *load) waits(t *topicLoad, perMinute float64, cause Cause) (*Warning, error) {
	var w *Warning
	open := false // the last minute had timers that wait
	backlog := float64(t.overdue)
	for bar := range l.bars {
		due, _, err := l.inBar(t, bar, false)
		if err != nil {
			return nil, err
		}
		for i, n := range due {
			backlog = max(0, backlog+float64(n)-perMinute)
			late := minutes(backlog / perMinute)
			at := l.minute(bar*l.perBar + i)
			if late < time.Minute {
				if open {
					w.Until, open = at, false
				}
				continue
			}
			if w == nil {
				w = &Warning{Cause: cause, From: at}
			}
			open, w.Late = true, max(w.Late, late)
		}
	}
	if open {
		w.Until = l.end().Add(minutes(backlog / perMinute))
	}
	return w, nil
}

// minutes is a number of minutes as a duration, at most ten years: a limit may be tiny.
func minutes(n float64) time.Duration {
	const most = 10 * 365 * 24 * 60
	return time.Duration(min(n, most) * float64(time.Minute)).Round(time.Second)
}
