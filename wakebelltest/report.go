package wakebelltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

// report describes the history of the World, for the log of a failed test.
func (w *World) report() string {
	topics := map[string]bool{}
	for _, d := range w.history.deliveries(func(*record) bool { return true }) {
		topics[d.Topic] = true
	}
	for full, err := range w.client.Topics(w.background(), true, wakebelltype.Page{}) {
		if err == nil {
			topics[strings.TrimPrefix(full, w.prefix)] = true
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "wakebelltest: the world at %s, %v after it began", instant(time.Now()), time.Since(w.began))
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		out.WriteString("\n" + w.reportOf(topic))
	}
	return out.String()
}

// reportOf describes the deliveries, pending timers and dead letters of a topic.
func (w *World) reportOf(topic string) string {
	var delivered, upcoming, dead []string
	for _, d := range w.Delivered(topic) {
		delivered = append(delivered, d.String())
	}
	timers, err := w.upcoming(w.client, topic)
	for _, u := range timers {
		upcoming = append(upcoming, u.String())
	}
	if err != nil {
		upcoming = append(upcoming, err.Error())
	}
	for letter, err := range w.client.DeadLetters(w.background(), topic, wakebelltype.DeadFilter{}, wakebelltype.Page{}) {
		if err != nil {
			dead = append(dead, err.Error())
			break
		}
		dead = append(dead, fmt.Sprintf("%q, died at %s: %s", letter.ID, instant(letter.Died), letter.Reason))
	}
	return fmt.Sprintf("topic %q", topic) + section("delivered", delivered) + section("upcoming", upcoming) + section("dead", dead)
}

func section(title string, lines []string) string {
	if len(lines) == 0 {
		return "\n  " + title + ": nothing"
	}
	return "\n  " + title + ":\n    " + strings.Join(lines, "\n    ")
}
