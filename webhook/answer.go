package webhook

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/text"
)

const (
	shownBytes = 256 // of an answer, in the reason of a failure
	readBytes  = 4 << 10
	// What is left of a body is read so that its connection can be used again. Beyond
	// these bounds, a new connection is cheaper.
	drainBytes = 64 << 10
	drainTime  = time.Second

	shownError = 512 // bytes of the text of an error
)

// verdict returns the verdict of an answer. It calls end if the body does not end in time.
func (w *Webhook) verdict(answer *http.Response, end func()) error {
	limit := time.AfterFunc(drainTime, end)
	head, _ := io.ReadAll(io.LimitReader(answer.Body, readBytes)) // what has arrived is enough
	_, _ = io.CopyN(io.Discard, answer.Body, drainBytes)
	limit.Stop()
	_ = answer.Body.Close() // it was only read
	code := answer.StatusCode
	if code >= 200 && code < 300 {
		return nil
	}
	reason := strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code))
	if shown := w.excerpt(head); shown != "" {
		reason += ": " + shown
	}
	err := w.failure(reason, nil)
	if !retried(code) {
		return wakebell.Reject(err)
	}
	if d := retryAfter(answer.Header, time.Now(), w.cfg.MaxRetryAfter); d > 0 {
		return fmt.Errorf("%w; %w", err, wakebell.RetryIn(d))
	}
	return err
}

// retried reports whether a status says that the same request may succeed later.
func retried(code int) bool {
	switch code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	default:
		return code >= 500 && code < 600
	}
}

// failure is the error of a request. Its text shows no more of the URL than the host.
func (w *Webhook) failure(reason string, cause error) error {
	return &failure{"POST to " + w.host + ": " + w.hide(reason), cause}
}

type failure struct {
	text  string
	cause error // may be nil
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }

// excerpt returns the beginning of an answer for people to read.
func (w *Webhook) excerpt(head []byte) string {
	return text.Cut(w.hide(clean(string(head))), shownBytes)
}

// clean returns a text from elsewhere without characters that control a terminal or the
// direction of writing.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, text.Valid(text.Cut(s, readBytes)))
	return strings.TrimSpace(s)
}

// shortestHidden is the length of the shortest text that is hidden: hiding each "1"
// would make reasons unreadable.
const shortestHidden = 4

// hiddenParts returns what of a URL an answer may repeat and no text may show: its query,
// and its path, the longest first.
func hiddenParts(u *url.URL) (parts []string) {
	add := func(s string) {
		if len(s) >= shortestHidden {
			parts = append(parts, s)
		}
	}
	add(u.RawQuery)
	for _, values := range u.Query() {
		for _, v := range values {
			add(v)
			add(url.QueryEscape(v))
		}
	}
	for _, path := range []string{u.EscapedPath(), u.Path} {
		add(path)
	}
	slices.SortFunc(parts, func(a, b string) int { return len(b) - len(a) })
	return parts
}

func (w *Webhook) hide(s string) string {
	for _, part := range w.hidden {
		s = strings.ReplaceAll(s, part, "…")
	}
	return text.Cut(s, shownError)
}

// retryAfter returns the delay that an answer asks for, at most limit; 0: none, or one
// that has passed.
func retryAfter(h http.Header, now time.Time, limit time.Duration) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value != "" && strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(limit/time.Second) { // too many digits
			return limit
		}
		return time.Duration(seconds) * time.Second
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	// The date is by the clock of the server, which may not agree with this one.
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(until.Sub(now), 0), limit)
}
