package remote_test

import (
	"bytes"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/reminder"
)

// A peer cannot choose the recipient of a reminder with an exported schedule that it has
// changed.
func TestImportReachesNoReminders(t *testing.T) {
	t.Parallel()
	of := keeping(t, "a")
	n := keeper(t, withToken(), of)
	c, ctx, name := dial(t, n).Schedules(), t.Context(), redistest.Name(t)
	require.NoError(t, c.Put(ctx, wakebell.NewTopic[string](name).Recurring(name, recurring.Rule{Every: time.Hour}, "x")))
	dump, err := c.Export(ctx, name)
	require.NoError(t, err)
	require.NoError(t, c.Delete(ctx, name))
	honest := dump.Wakebell
	for _, topic := range []string{of.Reminders.Topic, of.Reminders.Topic + ":a", of.Reminders.Topic + ":other", reminder.DefaultTopic + ":a", reminder.DefaultTopic + "~2~0"} {
		for _, forged := range [][]byte{
			bytes.ReplaceAll(honest, []byte(`"`+name+`"`), []byte(`"`+topic+`"`)),
			bytes.Replace(honest, []byte(`{`), []byte(`{"outbox":[{"topic":"`+topic+`","id":"x"}],`), 1),
		} {
			require.NotEqual(t, honest, forged)
			dump.Wakebell = forged
			err := c.Import(ctx, dump)
			require.ErrorIs(t, err, wakebell.ErrInvalid)
			require.ErrorContains(t, err, "it is that of reminders")
		}
	}
	dump.Wakebell = honest
	require.NoError(t, c.Import(ctx, dump))
	require.NoError(t, c.Delete(ctx, name))
}

// A peer gets no lease of a reminder, whose body it could replace: not at the node that
// delivers it, and not at others.
func TestReminderIsNotLeasedToPeer(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.HTTPAddress = "127.0.0.1:0"
	of := keeping(t, "a")
	for topics, n := range map[*[]string]*node{
		{reminder.DefaultTopic, reminder.DefaultTopic + ":b", of.Reminders.Topic + ":a", of.Reminders.Topic + ":b"}: keeper(t, cfg, of),
		{reminder.DefaultTopic, reminder.DefaultTopic + ":b"}:                                                       keeper(t, cfg, wakebell.Config{}),
	} {
		k := talk(t, n, secret)
		for _, topic := range *topics {
			leases := "/v1/topics/" + url.PathEscape(topic) + "/leases"
			lease := leases + "/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
			n.http(t, "POST", leases+":claim", `{"wait":"1s"}`).problem(t, http.StatusBadRequest, "invalid")
			n.http(t, "POST", lease+":checkpoint", `{"body":"x"}`).problem(t, http.StatusBadRequest, "invalid")
			n.http(t, "POST", lease+":release", "").problem(t, http.StatusBadRequest, "invalid")
			k.refused(messages.Code_CODE_INVALID, subscription(topic, 10))
			k.refused(messages.Code_CODE_INVALID, &messages.KeepRequest{Topic: topic, Subscriber: "s"})
			k.refused(messages.Code_CODE_INVALID, &messages.ScheduleRequest{Topic: topic})
		}
	}
}
