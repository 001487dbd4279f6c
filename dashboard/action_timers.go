package dashboard

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/show"
	payloads "github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (d *Dashboard) timerActions() map[string]action {
	all := map[string]action{
		"cancel":          {"topics", d.aboutTimer("Cancel", "This removes the timer, for good. The context of a running handler ends.", true), d.doCancel},
		"run-now":         {"topics", d.aboutTimer("Run now", "The timer is due at once. A timer that is due or running is not changed.", false), d.doRunNow},
		"reschedule":      {"topics", d.askReschedule, d.doReschedule},
		"schedule":        {"topics", d.askSchedule, d.doSchedule},
		"bulk-cancel":     {"topics", d.askBulk("Cancel", "This removes them, for good.", true), d.doBulk(d.cancelMany, "Cancelled", true, wakebelltype.AuditTopicCancel)},
		"bulk-run":        {"topics", d.askBulk("Run now", "They are due at once.", false), d.doBulk(d.runMany, "Made due", false, wakebelltype.AuditTopicRunNow)},
		"bulk-reschedule": {"topics", d.askBulk("Reschedule", "They get a new instant and begin again at attempt 1.", false), d.doBulk(d.rescheduleMany, "Rescheduled", false, wakebelltype.AuditTopicReschedule)},
	}
	if _, ok := d.joiner(); ok {
		all["close-join"] = action{"topics", d.aboutJoin("Close the join", "No further parts can be added. Its timer is due when all parts have ended, at once if they have.", false), d.doCloseJoin}
		all["cancel-join"] = action{"topics", d.aboutJoin("Cancel the join and its parts", "This removes the timer of the join and the parts that have not ended, for good. The contexts of running handlers end.", true), d.doCancelJoin}
	}
	return all
}

func (d *Dashboard) timerLink(r *request) string {
	return d.link("timer", "topic", r.get("topic"), "id", r.get("id"))
}

// aboutTimer returns the question of an action on one timer.
func (d *Dashboard) aboutTimer(verb, effect string, danger bool) func(context.Context, *request) (question, error) {
	return func(ctx context.Context, r *request) (question, error) {
		info, _, _, err := d.readTimer(ctx, r.get("topic"), r.get("id"))
		return question{
			Title: verb + ": timer " + show.Short(64, r.get("id")), Button: verb, Danger: danger, Back: d.timerLink(r),
			Text: []string{fmt.Sprintf("1 timer, %s, due %s.", d.states(ctx)(r.get("topic"), info), show.Since(info.Due, r.now)), effect},
		}, err
	}
}

func (d *Dashboard) doCancel(ctx context.Context, r *request, _ url.Values) (result, error) {
	found, err := d.op.Timers.Cancel(ctx, r.get("topic"), r.get("id"))
	if err != nil {
		return result{}, err
	}
	text := "The timer is cancelled. It was " + found[0].String() + "."
	if found[0] == wakebelltype.PresenceAbsent {
		text = "The timer did not exist any more."
	} else {
		text += d.record(ctx, r, wakebelltype.AuditTopicCancel, r.get("topic"), 1, idText(r.get("id")), nil)
	}
	return result{text: text, to: d.topicLink(r)}, nil
}

func (d *Dashboard) doRunNow(ctx context.Context, r *request, _ url.Values) (result, error) {
	found, err := d.op.Timers.RunNow(ctx, r.get("topic"), r.get("id"))
	text := "The timer is due now."
	switch {
	case found == wakebelltype.PresenceRunning:
		text = "The timer runs already."
	case err == nil:
		text += d.record(ctx, r, wakebelltype.AuditTopicRunNow, r.get("topic"), 1, idText(r.get("id")), nil)
	}
	return result{text: text, to: d.topicLink(r)}, err
}

// aboutJoin returns the question of an action on the join of a timer.
func (d *Dashboard) aboutJoin(verb, effect string, danger bool) func(context.Context, *request) (question, error) {
	return func(ctx context.Context, r *request) (question, error) {
		c, _ := d.joiner()
		join, err := c.Join(ctx, r.get("topic"), r.get("id"))
		return question{
			Title: verb + ": timer " + show.Short(64, r.get("id")), Button: verb, Danger: danger, Back: d.timerLink(r),
			Text: []string{fmt.Sprintf("The join has %s, of which %s not ended.", show.Things(join.Parts, "part"), have(join.Parts-join.Ended())), effect},
		}, err
	}
}

func have(n int64) string {
	if n == 1 {
		return "1 has"
	}
	return show.Count(n) + " have"
}

func (d *Dashboard) doCloseJoin(ctx context.Context, r *request, _ url.Values) (result, error) {
	c, _ := d.joiner()
	err := c.CloseJoin(ctx, r.get("topic"), r.get("id"))
	text := "The join is closed."
	if err == nil {
		text += d.record(ctx, r, wakebelltype.AuditTopicReschedule, r.get("topic"), 1, idText(r.get("id"))+", join closed", nil)
	}
	return result{text: text, to: d.timerLink(r)}, err
}

// doCancelJoin records what it has cancelled, also before an error.
func (d *Dashboard) doCancelJoin(ctx context.Context, r *request, _ url.Values) (result, error) {
	c, _ := d.joiner()
	n, err := c.CancelJoin(ctx, r.get("topic"), r.get("id"))
	parts := show.Things(n, "part")
	text := "The join is cancelled, with " + parts + "."
	if n > 0 || err == nil {
		text += d.record(ctx, r, wakebelltype.AuditTopicCancel, r.get("topic"), n+1, idText(r.get("id"))+", join with "+parts, err)
	}
	return result{text: text, to: d.topicLink(r)}, err
}

// idText describes one timer for the audit.
func idText(id string) string { return "ids: " + id }

const (
	whenLabel = "When"
	whenHint  = "A duration from now, such as 90s, 3h or 7d, or an instant such as 2031-01-02T15:04:05Z."
)

// parseWhen reads the field "when".
func parseWhen(form url.Values) (wakebell.ScheduleOption, error) {
	text := strings.TrimSpace(form.Get("when"))
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return wakebell.At(at), nil
	}
	in, err := span(whenLabel, text)
	if err != nil || text == "" {
		return nil, invalid(whenLabel, "%q; want a duration or an instant. %s", text, whenHint)
	}
	return wakebell.In(in), nil
}

func (d *Dashboard) askReschedule(ctx context.Context, r *request) (question, error) {
	q, err := d.aboutTimer("Reschedule", "The timer gets a new instant and begins again at attempt 1. A running handler is superseded.", false)(ctx, r)
	q.Fields = []field{{Name: "when", Label: whenLabel, Hint: whenHint, Required: true}}
	return q, err
}

func (d *Dashboard) doReschedule(ctx context.Context, r *request, form url.Values) (result, error) {
	when, err := parseWhen(form)
	if err != nil {
		return result{}, err
	}
	moved, err := d.op.Timers.Reschedule(ctx, r.get("topic"), r.get("id"), when)
	text := "The timer is due " + show.Since(moved.Due, r.now) + "."
	if err == nil {
		text += d.record(ctx, r, wakebelltype.AuditTopicReschedule, r.get("topic"), 1, idText(r.get("id"))+dueText(form), nil)
	}
	return result{text: text, to: d.timerLink(r)}, err
}

// The encodings of a body in the form.
const (
	asText = "text"
	asHex  = "hex"
)

// askSchedule is the form for a new timer. With an id in the address it is filled
// from that timer.
func (d *Dashboard) askSchedule(ctx context.Context, r *request) (question, error) {
	topic, id := r.get("topic"), r.get("id")
	content := wakebell.Content{ContentType: "application/json"}
	q := question{
		Title: "Schedule a timer", Button: "Schedule", Back: d.link("topics"),
		Text: []string{"This schedules 1 timer. A pending timer with the same id is replaced, unless you choose to keep it."},
	}
	if topic != "" {
		q.Back = d.topicLink(r)
	}
	if id != "" {
		if d.cfg.HidePayloads || d.cfg.Redact != nil {
			return q, fmt.Errorf("%w: payloads are hidden or redacted here, so they cannot be edited", wakebell.ErrForbidden)
		}
		var err error
		if _, content, err = d.op.Timers.Get(ctx, topic, id); err != nil {
			return q, err
		}
		if payloads.Marked(content.Headers, nil) {
			return q, fmt.Errorf("%w: the body is encoded, so it cannot be edited here", wakebell.ErrForbidden)
		}
		q.Title, q.Back = "Edit and schedule again", d.timerLink(r)
	}
	q.Fields = scheduleFields(topic, id, content)
	return q, nil
}

func scheduleFields(topic, id string, c wakebell.Content) []field {
	encoding, body := asText, string(c.Body)
	if !utf8.Valid(c.Body) || strings.ContainsRune(body, '\r') { // a form would change them
		encoding, body = asHex, hex.EncodeToString(c.Body)
	}
	headers, _ := json.Marshal(c.Headers.Map()) // a map of strings can be encoded
	if len(c.Headers) == 0 {
		headers = nil
	}
	return []field{
		{Name: "topic", Label: "Topic", Value: topic, Required: true},
		{Name: "id", Label: "Id", Value: id, Hint: "Empty: a new one is made."},
		{Name: "when", Label: whenLabel, Hint: whenHint, Required: true},
		{Name: "exists", Label: "If a timer of this id exists", Kind: "select", Options: []string{"replace", "keep", "earliest"}},
		{Name: "body", Label: "Body", Kind: "area", Value: body},
		{Name: "encoding", Label: "The body is given as", Kind: "select", Options: []string{asText, asHex}, Value: encoding},
		{Name: "content_type", Label: "Content type", Value: c.ContentType},
		{Name: "headers", Label: "Headers", Kind: "area", Value: string(headers), Hint: `A JSON object of strings, such as {"tenant":"a"}.`},
		{Name: "correlation_id", Label: "Correlation id", Value: c.CorrelationID},
	}
}

func (d *Dashboard) doSchedule(ctx context.Context, r *request, form url.Values) (result, error) {
	draft, err := draftOf(form)
	if err != nil {
		return result{}, err
	}
	done, err := d.op.Timers.Schedule(ctx, draft)
	if err != nil {
		return result{}, err
	}
	text := fmt.Sprintf("Timer %s: %s, due %s.", done[0].ID, done[0].Outcome, show.Since(done[0].Due, r.now))
	switch done[0].Outcome {
	case wakebelltype.OutcomeKeptPending, wakebelltype.OutcomeKeptRunning, wakebelltype.OutcomeKeptEarlier:
	default:
		text += d.record(ctx, r, wakebelltype.AuditTopicSchedule, form.Get("topic"), 1, idText(done[0].ID)+dueText(form), nil)
	}
	return result{text: text, to: d.link("topic", "name", form.Get("topic"))}, nil
}

func draftOf(form url.Values) (wakebell.Draft, error) {
	var none wakebell.Draft
	when, err := parseWhen(form)
	if err != nil {
		return none, err
	}
	body, err := bodyOf(form)
	if err != nil {
		return none, err
	}
	var exists wakebelltype.Policy
	if err := exists.UnmarshalText([]byte(form.Get("exists"))); err != nil {
		return none, invalid("if a timer exists", "want replace, keep or earliest")
	}
	opts := []wakebell.ScheduleOption{when, wakebell.IfExists(exists)}
	if id := form.Get("id"); id != "" {
		opts = append(opts, wakebell.ID(id))
	}
	if media := strings.TrimSpace(form.Get("content_type")); media != "" {
		opts = append(opts, wakebell.ContentType(media))
	}
	if id := form.Get("correlation_id"); id != "" {
		opts = append(opts, wakebell.CorrelationID(id))
	}
	headers := map[string]string{}
	if text := strings.TrimSpace(form.Get("headers")); text != "" {
		if err := json.Unmarshal([]byte(text), &headers); err != nil {
			return none, invalid("headers", "%v; want a JSON object of strings", err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(headers)) {
		opts = append(opts, wakebell.Header(key, headers[key]))
	}
	return wakebell.NewTopic[[]byte](form.Get("topic")).Draft(body, opts...), nil
}

// bodyOf returns the bytes of the field "body".
func bodyOf(form url.Values) ([]byte, error) {
	// A browser sends line feeds as CR LF.
	text := strings.ReplaceAll(form.Get("body"), "\r\n", "\n")
	if form.Get("encoding") == asHex {
		body, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			return nil, invalid("body", "%v; want hexadecimal digits", err)
		}
		return body, nil
	}
	if strings.Contains(form.Get("content_type"), "json") && text != "" && !json.Valid([]byte(text)) {
		return nil, invalid("body", "not valid JSON, but the content type says so")
	}
	return []byte(text), nil
}
