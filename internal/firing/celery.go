package firing

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/redisops/recurring"
)

// celeryOptions has the options of a definition that affect the message. apply_async
// has more, which affect the sender.
type celeryOptions struct {
	Queue         json.RawMessage `json:"queue"`
	RoutingKey    string          `json:"routing_key"`
	Priority      *float64        `json:"priority"` // whole, but Python may write it as a float
	Expires       json.RawMessage `json:"expires"`
	ETA           json.RawMessage `json:"eta"`
	Countdown     *float64        `json:"countdown"`
	Serializer    string          `json:"serializer"`
	TimeLimit     *float64        `json:"time_limit"`
	SoftTimeLimit *float64        `json:"soft_time_limit"`
	Shadow        *string         `json:"shadow"`
	IgnoreResult  bool            `json:"ignore_result"`
}

var errOptions = errors.New("its options cannot be read")

const (
	defaultQueue = "celery"
	separator    = "\x06\x16" // between the parts of a name in kombu
)

// celeryMessage is a message of Celery's protocol 2 on a Redis broker.
type celeryMessage struct {
	Body            string         `json:"body"`
	ContentEncoding string         `json:"content-encoding"`
	ContentType     string         `json:"content-type"`
	Headers         map[string]any `json:"headers"`
	Properties      map[string]any `json:"properties"`
}

// origin identifies the sender, and replyTo the queue for answers.
var (
	origin = sync.OnceValue(func() string {
		host, _ := os.Hostname() // for diagnosis only
		return "wakebell" + strconv.Itoa(os.Getpid()) + "@" + host
	})
	replyTo = sync.OnceValue(uuid.NewString)
)

// runSpace is the UUID namespace in which message ids are derived from run ids.
var runSpace = uuid.MustParse("1b7f6f0e-5a55-4c4e-9d3e-0f5a3c1a7c11")

// celeryRun is a run as a message for Celery workers. at is when it is sent: countdown and
// expires count from then, as in Celery, also if the run is late. The headers of its span
// are beside Celery's own, where OpenTelemetry's instrumentation of Celery puts and reads
// them.
func celeryRun(e *recur.Entry, at time.Time, id string, span map[string]string) (recurring.Run, error) {
	o, err := readOptions(e.Definition.Options)
	if err != nil {
		return recurring.Run{}, err
	}
	queue, err := o.queue()
	if err != nil {
		return recurring.Run{}, err
	}
	routing := o.RoutingKey
	if routing == "" {
		routing = queue
	}
	expires, expiration, err := o.expiry(at)
	if err != nil {
		return recurring.Run{}, err
	}
	eta, err := o.eta(at)
	if err != nil {
		return recurring.Run{}, err
	}
	args, kwargs := e.Arguments()
	task := uuid.NewSHA1(runSpace, []byte(id)).String()
	priority := 0
	if o.Priority != nil {
		priority = int(*o.Priority)
	}
	headers := map[string]any{
		"lang": "py", "task": e.Definition.Task, "id": task, "shadow": o.Shadow, "eta": eta, "expires": expires,
		"group": nil, "group_index": nil, "retries": 0, "timelimit": []any{o.TimeLimit, o.SoftTimeLimit},
		"root_id": task, "parent_id": nil, "argsrepr": string(recur.Native(args)), "kwargsrepr": string(recur.Native(kwargs)),
		"origin": origin(), "ignore_result": o.IgnoreResult,
	}
	for key, value := range span {
		if _, taken := headers[key]; !taken {
			headers[key] = value
		}
	}
	properties := map[string]any{
		"correlation_id": task, "reply_to": replyTo(), "delivery_mode": 2,
		"delivery_info": map[string]any{"exchange": "", "routing_key": routing},
		"priority":      priority, "body_encoding": "base64", "delivery_tag": task,
	}
	if expiration != "" {
		properties["expiration"] = expiration
	}
	return message(queue, priority, routing, args, kwargs, headers, properties)
}

func readOptions(raw json.RawMessage) (o celeryOptions, err error) {
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &o); err != nil {
			return o, fmt.Errorf("%w: %w", errOptions, err)
		}
	}
	if o.Serializer != "" && o.Serializer != "json" {
		return o, fmt.Errorf("%w: serializer %q, want json", errOptions, o.Serializer)
	}
	return o, nil
}

// queue returns the name of the list that the message is pushed to, without the suffix
// for its priority.
func (o celeryOptions) queue() (string, error) {
	queue := defaultQueue
	if len(o.Queue) > 0 && string(o.Queue) != "null" {
		if err := json.Unmarshal(o.Queue, &queue); err != nil || queue == "" {
			return "", fmt.Errorf("%w: queue %.100s", errOptions, o.Queue)
		}
	}
	return queue, nil
}

// optionNames are the supported options.
var optionNames = []string{
	"queue", "routing_key", "priority", "expires", "eta", "countdown", "serializer", "time_limit", "soft_time_limit", "shadow", "ignore_result",
}

// knownOptions refuses unsupported and duplicate options, which a Python beat may
// interpret differently.
func knownOptions(raw json.RawMessage) error {
	var all map[string]json.RawMessage
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return fmt.Errorf("%w: %w", errOptions, err)
	}
	tokens, depth, given := json.NewDecoder(bytes.NewReader(raw)), 0, 0
	for token, err := tokens.Token(); err == nil; token, err = tokens.Token() {
		if d, ok := token.(json.Delim); ok && (d == '{' || d == '[') {
			depth++
		} else if ok {
			depth--
		} else if _, ok := token.(string); ok && depth == 1 {
			given++ // a name or a string value
		}
	}
	names := 0
	for name, value := range all {
		if !slices.Contains(optionNames, name) {
			return fmt.Errorf("%w: %.50q, want one of %s", errOptions, name, strings.Join(optionNames, ", "))
		}
		if names++; len(value) > 0 && value[0] == '"' {
			names++
		}
	}
	if given != names {
		return fmt.Errorf("%w: duplicate option", errOptions)
	}
	return nil
}

func message(queue string, priority int, routing string, args, kwargs json.RawMessage, headers, properties map[string]any) (recurring.Run, error) {
	body, err := json.Marshal([]any{args, kwargs, map[string]any{"callbacks": nil, "errbacks": nil, "chain": nil, "chord": nil}})
	if err != nil {
		return recurring.Run{}, fmt.Errorf("%w: %w", errOptions, err)
	}
	payload, err := json.Marshal(celeryMessage{
		Body: base64.StdEncoding.EncodeToString(recur.Native(body)), ContentEncoding: "utf-8", ContentType: "application/json",
		Headers: headers, Properties: properties,
	})
	if err != nil {
		return recurring.Run{}, fmt.Errorf("%w: %w", errOptions, err)
	}
	list := queue
	if step := min(priority, 9) / 3 * 3; step > 0 {
		list += separator + strconv.Itoa(step)
	}
	member := strings.Join([]string{routing, "", queue}, separator)
	if routing == queue {
		member = strings.Join([]string{queue, "", queue}, separator)
	}
	return recurring.Run{Queue: list, Binding: "_kombu.binding." + queue, Member: member, Payload: payload}, nil
}

// expiry returns the instant at which a message expires, as Celery writes it, and its
// maximum time in the queue in ms, which is 0 after that instant.
func (o celeryOptions) expiry(at time.Time) (expires any, expiration string, err error) {
	if none(o.Expires) {
		return nil, "", nil
	}
	var seconds float64
	var until time.Time
	if json.Unmarshal(o.Expires, &seconds) == nil {
		until, err = secondsAfter("expires", at, seconds)
	} else {
		until, err = instantOf("expires", o.Expires)
		seconds = until.Sub(at).Seconds()
	}
	if err != nil {
		return nil, "", err
	}
	return pythonTime(until), strconv.FormatInt(max(int64(seconds*1000), 0), 10), nil
}

// eta returns the instant at which workers begin a task. A countdown of 0 is none, and another one
// takes precedence over an instant.
func (o celeryOptions) eta(at time.Time) (any, error) {
	var begin time.Time
	var err error
	switch {
	case o.Countdown != nil && *o.Countdown != 0:
		begin, err = secondsAfter("countdown", at, *o.Countdown)
	case none(o.ETA):
		return nil, nil
	default:
		begin, err = instantOf("eta", o.ETA)
	}
	if err != nil {
		return nil, err
	}
	return pythonTime(begin), nil
}

// none reports whether an option is absent.
func none(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// secondsAfter returns the instant some seconds after another, in the range of Celery and Python.
func secondsAfter(option string, at time.Time, seconds float64) (time.Time, error) {
	const most = 1 << 38 // more than 8,000 years
	if seconds >= math.MinInt32 && seconds < most {
		whole, part := math.Modf(seconds)
		if t := time.Unix(at.Unix()+int64(whole), int64(at.Nanosecond())+int64(part*1e9)); t.UTC().Year() <= 9999 {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%w: %s of %g seconds is out of range", errOptions, option, seconds)
}

// instantOf reads an instant that is a text of ISO 8601, or that RedBeat has written as a datetime.
// One without a zone is in UTC, also for an app in another zone.
func instantOf(option string, raw json.RawMessage) (time.Time, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if t, ok := isoTime(text); ok {
			return t, nil
		}
		return time.Time{}, fmt.Errorf("%w: %s: %.50q is not a time of ISO 8601", errOptions, option, text)
	}
	m, err := recur.ReadMeta([]byte(`{"last_run_at":` + string(raw) + `}`))
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %s: %w", errOptions, option, err)
	}
	return m.LastRunAt, nil
}

// isoTime reads a text of ISO 8601 as Python's datetime.fromisoformat does, with which workers of
// Celery 5.3 read it: also a date by week. Go reads fractions of seconds without a layout.
func isoTime(text string) (t time.Time, ok bool) {
	day, rest, ok := isoDate(text)
	if !ok || rest == "" {
		return day, ok
	}
	_, between := utf8.DecodeRuneInString(rest) // Python takes any
	rest = strings.ToUpper(rest[between:])
	for _, clock := range []string{"15:04:05", "15:04", "150405", "1504", "15"} {
		for _, zone := range []string{"", "Z07:00", "Z0700", "Z07"} {
			if c, err := time.Parse(clock+zone, rest); err == nil {
				hour, minute, second := c.Clock()
				return time.Date(day.Year(), day.Month(), day.Day(), hour, minute, second, c.Nanosecond(), c.Location()), true
			}
		}
	}
	return time.Time{}, false
}

var isoWeek = regexp.MustCompile(`^(\d{4})(?:-W(\d{2})(?:-(\d))?|W(\d{2})(\d)?)`)

// isoDate reads the date that a text begins with. A week without a day is its Monday.
func isoDate(text string) (day time.Time, rest string, ok bool) {
	for _, layout := range []string{time.DateOnly, "20060102"} {
		if n := len(layout); len(text) >= n {
			if day, err := time.Parse(layout, text[:n]); err == nil {
				return day, text[n:], true
			}
		}
	}
	found := isoWeek.FindStringSubmatch(text)
	if found == nil {
		return time.Time{}, "", false
	}
	year, _ := strconv.Atoi(found[1])
	week, _ := strconv.Atoi(found[2] + found[4])
	weekday, _ := strconv.Atoi(cmp.Or(found[3]+found[5], "1"))
	fourth := time.Date(year, time.January, 4, 0, 0, 0, 0, time.UTC) // of January, in week 1
	day = fourth.AddDate(0, 0, 7*(week-1)+weekday-1-(int(fourth.Weekday())+6)%7)
	inYear, inWeek := day.ISOWeek()
	return day, text[len(found[0]):], weekday >= 1 && weekday <= 7 && inYear == year && inWeek == week
}

// pythonTime formats an instant as Python's isoformat does.
func pythonTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }
