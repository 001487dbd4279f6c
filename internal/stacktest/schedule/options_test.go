package schedule_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The error about an invalid timer names the field and its bound. Nothing is written.
func TestInvalidTimersAreRefusedAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	c := stacktest.Client(t, rdb, connection.Config{PayloadLimit: 1000})
	topic := wakebell.NewTopic[any]("t")
	long := strings.Repeat("x", 65_536)
	good := topic.Draft("good", wakebell.ID("good"))
	other := wakebell.NewTopic[string]("other")
	for name, wrong := range map[string]struct {
		drafts []wakebell.Draft
		says   []string
	}{
		"empty topic":            {[]wakebell.Draft{wakebell.NewTopic[string]("").Draft("x")}, []string{"timer 0", "topic", "empty"}},
		"zero topic":             {[]wakebell.Draft{wakebell.Topic[string]{}.Draft("x")}, []string{"timer 0", "topic"}},
		"zero draft":             {[]wakebell.Draft{{}}, []string{"timer 0", "topic"}},
		"long topic":             {[]wakebell.Draft{wakebell.NewTopic[string](long[:513]).Draft("x")}, []string{"topic", "513", "512"}},
		"In and At":              {[]wakebell.Draft{topic.Draft("x", wakebell.In(1), wakebell.At(time.Now()))}, []string{"timer 0", "In, At"}},
		"In twice":               {[]wakebell.Draft{topic.Draft("x", wakebell.In(1), wakebell.In(1))}, []string{"In, At"}},
		"At zero":                {[]wakebell.Draft{topic.Draft("x", wakebell.At(time.Time{}))}, []string{"At", "zero"}},
		"At in the year 10000":   {[]wakebell.Draft{topic.Draft("x", wakebell.At(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)))}, []string{"at", "9999"}},
		"empty id":               {[]wakebell.Draft{topic.Draft("x", wakebell.ID(""))}, []string{"ID", "empty"}},
		"long id":                {[]wakebell.Draft{topic.Draft("x", wakebell.ID(long[:513]))}, []string{"id", "513", "512"}},
		"id not UTF-8":           {[]wakebell.Draft{topic.Draft("x", wakebell.ID("\xff"))}, []string{"id", "UTF-8"}},
		"long header":            {[]wakebell.Draft{topic.Draft("x", wakebell.Header("x-tenant", long))}, []string{"Header", "x-tenant", "65536", "65535"}},
		"long header key":        {[]wakebell.Draft{topic.Draft("x", wakebell.Header(long, ""))}, []string{"Header", "65536", "65535"}},
		"empty header key":       {[]wakebell.Draft{topic.Draft("x", wakebell.Header("", "x"))}, []string{"Header", "empty"}},
		"header of the envelope": {[]wakebell.Draft{topic.Draft("x", wakebell.Header("content-type", "x"))}, []string{`Header "content-type"`, "envelope"}},
		"long correlation id":    {[]wakebell.Draft{topic.Draft("x", wakebell.CorrelationID(long))}, []string{"CorrelationID", "65536", "65535"}},
		"body over the limit":    {[]wakebell.Draft{topic.Draft(long[:1000])}, []string{"body", "1000"}},
		"body of no format":      {[]wakebell.Draft{topic.Draft(make(chan int))}, []string{"body"}},
		"body not finite":        {[]wakebell.Draft{topic.Draft(math.NaN())}, []string{"body"}},
		"unknown policy":         {[]wakebell.Draft{topic.Draft("x", wakebell.IfExists(9))}, []string{"IfExists", "9"}},
		"nil option":             {[]wakebell.Draft{topic.Draft("x", nil)}, []string{"option", "nil"}},
		"id twice":               {[]wakebell.Draft{good, good}, []string{"timer 1", "good", "twice"}},
		"second of two":          {[]wakebell.Draft{good, topic.Draft("x", wakebell.ID("\xff"))}, []string{"timer 1", "UTF-8"}},
		"second of two topics":   {[]wakebell.Draft{good, other.Draft("x", wakebell.ID("\xff"))}, []string{"timer 1", "UTF-8"}},
		"second long topic":      {[]wakebell.Draft{good, wakebell.NewTopic[string](long).Draft("x")}, []string{"timer 1", "topic", "512"}},
	} {
		_, err := c.Schedule(t.Context(), wrong.drafts...)
		require.ErrorIs(t, err, wakebell.ErrInvalid, name)
		for _, word := range wrong.says {
			require.ErrorContains(t, err, word, name)
		}
		require.Less(t, len(err.Error()), 1000, "%s: an error shows a long input in part", name)
		require.Zero(t, rdb.DBSize(t.Context()).Val(), name)
	}
	_, err := c.Schedule(t.Context())
	require.NoError(t, err, "no timers at all are no error")
	require.Zero(t, rdb.DBSize(t.Context()).Val())
}

// One error lists all invalid fields of a configuration.
func TestInvalidConfigurationsAreRefused(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string]("t")
	nothing := func(context.Context, wakebell.Timer[string]) error { return nil }
	with := func(opts ...wakebell.HandlerOption) wakebell.Config {
		return wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(topic, nothing, opts...)}}
	}
	handlers := func(h ...wakebell.Handler) wakebell.Config { return wakebell.Config{Handlers: h} }
	for name, wrong := range map[string]struct {
		cfg  wakebell.Config
		says []string
	}{
		"two handlers":      {handlers(wakebell.Handle(topic, nothing), wakebell.Handle(topic, nothing)), []string{"Handlers[1]", `"t"`, "already"}},
		"empty topic":       {handlers(wakebell.Handle(wakebell.NewTopic[string](""), nothing)), []string{"Handlers[0]", "topic: empty"}},
		"long topic":        {handlers(wakebell.Handle(wakebell.NewTopic[string](strings.Repeat("x", 513)), nothing)), []string{"513", "512"}},
		"nil function":      {handlers(wakebell.Handle[string](topic, nil)), []string{"Handlers[0]", "handler", "nil"}},
		"zero handler":      {handlers(wakebell.Handler{}), []string{"Handlers[0]", "Handle"}},
		"nil option":        {with(nil), []string{"option", "nil"}},
		"MaxConcurrent":     {with(wakebell.MaxConcurrent(0)), []string{"MaxConcurrent", "0", "10000"}},
		"LeaseTTL":          {with(wakebell.LeaseTTL(time.Millisecond)), []string{"LeaseTTL", "1ms", "100ms", "24h"}},
		"MaxLeaseAge":       {with(wakebell.MaxLeaseAge(-1)), []string{"MaxLeaseAge"}},
		"PollingInterval":   {with(wakebell.PollingInterval(0)), []string{"PollingInterval", "1ms", "1h"}},
		"polling max < min": {with(wakebell.PollingInterval(time.Minute)), []string{"MaxPollingInterval", "5s", "1m"}},
		"RetryBackoff":      {with(wakebell.RetryBackoff(time.Minute, time.Second)), []string{"RetryBackoff", "1s", "1m"}},
		"MaxAttempts":       {with(wakebell.MaxAttempts(0)), []string{"MaxAttempts", "1000000"}},
		"DeliveryWindow":    {with(wakebell.DeliveryWindow(-1)), []string{"DeliveryWindow", "0s", "10s"}},
		"long window":       {with(wakebell.DeliveryWindow(time.Minute)), []string{"DeliveryWindow", "1m", "10s"}},
		"Name":              {wakebell.Config{Name: "a/b"}, []string{"Name", "a/b"}},
		"DrainTimeout":      {wakebell.Config{DrainTimeout: 2 * time.Hour}, []string{"DrainTimeout", "1h"}},
		"WaitForRedis":      {wakebell.Config{WaitForRedis: -1}, []string{"WaitForRedis"}},
		"DeadLetterCap":     {wakebell.Config{DeadLetterCap: -1}, []string{"DeadLetterCap"}},
		"several at once":   {wakebell.Config{Name: "$", DeadLetterCap: -1}, []string{"Name", "DeadLetterCap"}},
	} {
		_, err := wakebell.New(stacktest.ActorSystem(), conntest.New(t, rdb, connection.Config{}), wrong.cfg)
		require.ErrorIs(t, err, wakebell.ErrInvalid, name)
		for _, word := range wrong.says {
			require.ErrorContains(t, err, word, name)
		}
	}
	long := conntest.New(t, rdb, connection.Config{Prefix: strings.Repeat("p", 512)})
	_, err := wakebell.New(stacktest.ActorSystem(), long, with())
	require.ErrorContains(t, err, "513 bytes, at most 512")
	_, err = wakebell.New(stacktest.ActorSystem(), nil, wakebell.Config{Name: "a/b"})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	require.ErrorContains(t, err, "conn: nil")
	require.ErrorContains(t, err, "Name")
	_, err = wakebell.NewClient(nil)
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

// A nil or zero client, or a topic without a name, causes an error and not a panic.
func TestMisusedClients(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("t")
	for _, c := range []*wakebell.Client{nil, {}} {
		_, err := topic.Schedule(t.Context(), c, "x")
		require.ErrorIs(t, err, wakebell.ErrInvalid)
		require.ErrorContains(t, err, "client")
	}
	for _, prefix := range []string{"", "prefix:"} {
		c := stacktest.Client(t, redistest.Shared(t), connection.Config{Prefix: prefix})
		for what, call := range map[string]func() error{
			"Cancel":    func() error { _, err := c.Cancel(t.Context(), "", "x"); return err },
			"CancelAll": func() error { _, err := c.CancelAll(t.Context(), ""); return err },
			"Get":       func() error { _, _, err := c.Get(t.Context(), "", "x"); return err },
			"Forget":    func() error { return c.Forget(t.Context(), "") },
			"Stats":     func() error { _, err := c.Stats(t.Context(), ""); return err },
			"List": func() (err error) {
				for _, err = range c.List(t.Context(), "", wakebell.Filter{}, wakebelltype.Page{}) {
					break
				}
				return err
			},
			"DeadLetters": func() (err error) {
				for _, err = range c.DeadLetters(t.Context(), "", wakebelltype.DeadFilter{}, wakebelltype.Page{}) {
					break
				}
				return err
			},
		} {
			err := call()
			require.ErrorIs(t, err, wakebell.ErrInvalid, "%s with prefix %q", what, prefix)
			require.ErrorContains(t, err, "topic")
		}
	}
}
