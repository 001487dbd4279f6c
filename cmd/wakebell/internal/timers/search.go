package timers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// scanLimit is the default of --scan.
	scanLimit = 10_000
	// scanPage is the number of timers whose contents are read before the matches among
	// them are printed.
	scanPage = 200
	// scanAtOnce is the number of contents that are read at once.
	scanAtOnce = 16
)

// searchFlags select timers by their ids or their contents.
type searchFlags struct {
	text    string
	content bool
	scan    int // 0: no limit

	given func(flag string) bool
}

func (f *searchFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.text, "search", "", "only timers whose id begins with this `text`")
	flags.BoolVar(&f.content, "content", false, "with --search: also timers with the text in a header or in the body")
	flags.IntVar(&f.scan, "scan", scanLimit, "with --content: maximum `number` of timers to read; 0: all")
	f.given = flags.Changed
}

// searches reports whether --search is given, and rejects flags that need it. An empty
// shell variable must not select all timers.
func (f *searchFlags) searches() (bool, error) {
	searches := f.given("search")
	switch {
	case searches && f.text == "":
		return false, cli.Usagef("--search: empty")
	case !searches && f.content:
		return false, cli.Usagef("--content: requires --search")
	case !f.content && f.given("scan"):
		return false, cli.Usagef("--scan: requires --content")
	case f.scan < 0:
		return false, cli.Usagef("--scan: %d, want a number from 0", f.scan)
	}
	return searches, nil
}

// selected names the timers of a question.
func (f *searchFlags) selected(topic string) string { return "timers of " + topic + " " + f.words() }

// words describes the selection.
func (f *searchFlags) words() string {
	if f.content {
		return fmt.Sprintf("with %q in the id, a header or the body", f.text)
	}
	return fmt.Sprintf("whose ids begin with %q", f.text)
}

// search yields the timers of a topic that match, and shows its progress. It stops at
// the limit of --scan, after a note with the cursor to continue with.
func search(ctx context.Context, a *cli.App, c wakebell.TimerClient, topic string, filter wakebell.Filter, after string, f *searchFlags) iter.Seq2[wakebell.Info, error] {
	return func(yield func(wakebell.Info, error) bool) {
		progress := a.Progress("search", searchTotal(ctx, c, topic))
		defer progress.End()
		page := make([]wakebell.Info, 0, scanPage)
		read := 0
		flush := func() bool {
			matches, err := f.matching(ctx, a, c, topic, page)
			progress.Add(int64(len(page)))
			page = page[:0]
			for _, info := range matches {
				if !yield(info, nil) {
					return false
				}
			}
			return err == nil || yield(wakebell.Info{}, err)
		}
		for info, err := range c.List(ctx, topic, filter, wakebelltype.Page{After: after}) {
			if err != nil {
				if flush() {
					yield(wakebell.Info{}, err)
				}
				return
			}
			if f.content && f.scan > 0 && read == f.scan {
				a.Notef("wakebell: %d timers were read; --after '%s' or a larger --scan continues\n", read, after)
				break
			}
			read, after = read+1, info.Cursor
			if page = append(page, info); len(page) == scanPage && !flush() {
				return
			}
		}
		flush()
	}
}

// searchTotal returns how many timers are to be searched, for the progress; 0 if it is
// unknown.
func searchTotal(ctx context.Context, c wakebell.TimerClient, topic string) int64 {
	stats, err := c.Stats(ctx, topic)
	if err != nil {
		return 0 // the listing reports it
	}
	return stats.Total
}

// matching returns the timers of a page that match, in their order.
func (f *searchFlags) matching(ctx context.Context, a *cli.App, c wakebell.TimerClient, topic string, page []wakebell.Info) ([]wakebell.Info, error) {
	matches := make([]bool, len(page))
	faults := make([]error, len(page))
	slots := make(chan struct{}, scanAtOnce)
	var done sync.WaitGroup
	for i, info := range page {
		if matches[i] = strings.HasPrefix(info.ID, f.text); matches[i] || !f.content {
			continue
		}
		slots <- struct{}{}
		done.Go(func() {
			matches[i], faults[i] = f.within(ctx, a, c, topic, info.ID)
			<-slots
		})
	}
	done.Wait()
	var found []wakebell.Info
	for i, info := range page {
		if matches[i] {
			found = append(found, info)
		}
	}
	return found, errors.Join(faults...)
}

// within reports whether a header or the body of a timer contains the text. A timer
// that is gone or that is too large to be read does not match.
func (f *searchFlags) within(ctx context.Context, a *cli.App, c wakebell.TimerClient, topic, id string) (bool, error) {
	_, inside, err := c.Get(ctx, topic, id)
	switch {
	case errors.Is(err, wakebell.ErrNotFound), errors.Is(err, wakebell.ErrTooLarge):
		return false, nil
	case err != nil:
		return false, err
	}
	inside, _, _ = a.Plain(ctx, topic, id, inside)
	for _, h := range inside.Headers {
		if strings.Contains(h.Key, f.text) || strings.Contains(h.Value, f.text) {
			return true, nil
		}
	}
	return strings.Contains(string(inside.Body), f.text), nil
}
