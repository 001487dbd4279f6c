// Package jobs runs changes that take long in the background, with their progress.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wakebell/wakebell/internal/usercode"
)

const (
	maxRunning  = 8
	maxFinished = 50
)

// ErrBusy is returned by Start if too many jobs run.
var ErrBusy = fmt.Errorf("%d jobs run already; wait for one, or stop one", maxRunning)

// Job is a change that runs or has ended.
type Job struct {
	ID      int64
	Title   string
	By      string
	Started time.Time
	Expect  int64 // items; 0: not known

	done   atomic.Int64
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	summary string
	err     error
	end     time.Time
}

// Add counts items that are done.
func (j *Job) Add(n int64) { j.done.Add(n) }

// Status is the state of a job at an instant.
type Status struct {
	ID      int64
	Title   string
	By      string
	Started time.Time
	Ended   time.Time // zero while it runs
	Expect  int64
	Done    int64
	Rate    float64 // items per second
	Left    time.Duration
	Summary string
	Err     error
}

// Running reports whether the job has not ended.
func (s Status) Running() bool { return s.Ended.IsZero() }

// Stopped reports whether the job was stopped before its end.
func (s Status) Stopped() bool { return errors.Is(s.Err, context.Canceled) }

// Status returns the state of the job.
func (j *Job) Status() Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := Status{
		ID: j.ID, Title: j.Title, By: j.By, Started: j.Started, Ended: j.end,
		Expect: j.Expect, Done: j.done.Load(), Summary: j.summary, Err: j.err,
	}
	until := s.Ended
	if until.IsZero() {
		until = time.Now()
	}
	if took := until.Sub(j.Started).Seconds(); took > 0 {
		s.Rate = float64(s.Done) / took
	}
	if s.Running() && s.Rate > 0 && s.Expect > s.Done {
		s.Left = time.Duration(float64(s.Expect-s.Done) / s.Rate * float64(time.Second))
	}
	return s
}

// Ended is closed when the job has ended.
func (j *Job) Ended() <-chan struct{} { return j.ended }

// Jobs are the jobs of one dashboard. The zero value is ready.
type Jobs struct {
	mu      sync.Mutex
	last    int64
	all     []*Job // the newest last
	closed  bool
	running sync.WaitGroup
}

// Start runs do in the background. Its context has the values of ctx and ends with
// Stop or Close. The summary says what was done, also with an error.
func (js *Jobs) Start(ctx context.Context, title, by string, expect int64, do func(context.Context, *Job) (summary string, err error)) (*Job, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	n := 0
	for _, j := range js.all {
		if j.Status().Running() {
			n++
		}
	}
	if n >= maxRunning || js.closed {
		return nil, ErrBusy
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	js.last++
	j := &Job{ID: js.last, Title: title, By: by, Started: time.Now(), Expect: expect, cancel: cancel, ended: make(chan struct{})}
	js.all = append(js.all, j)
	if len(js.all) > maxFinished+maxRunning {
		oldest := slices.IndexFunc(js.all, func(j *Job) bool { return !j.Status().Running() })
		js.all = slices.Delete(js.all, oldest, oldest+1)
	}
	js.running.Go(func() {
		defer cancel()
		var summary string
		err := usercode.Called("the job", func() (err error) {
			summary, err = do(ctx, j)
			return err
		})
		j.mu.Lock()
		j.summary, j.err, j.end = summary, err, time.Now()
		j.mu.Unlock()
		close(j.ended)
	})
	return j, nil
}

// All returns the jobs, the newest first.
func (js *Jobs) All() []Status {
	js.mu.Lock()
	defer js.mu.Unlock()
	all := make([]Status, 0, len(js.all))
	for _, j := range slices.Backward(js.all) {
		all = append(all, j.Status())
	}
	return all
}

// Get returns a job, or nil.
func (js *Jobs) Get(id int64) *Job {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.all {
		if j.ID == id {
			return j
		}
	}
	return nil
}

// Stop ends the context of a job.
func (j *Job) Stop() { j.cancel() }

// Close stops all jobs and waits for their end.
func (js *Jobs) Close() {
	js.mu.Lock()
	js.closed = true
	for _, j := range js.all {
		j.cancel()
	}
	js.mu.Unlock()
	js.running.Wait()
}
