package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

// SuggestLimit bounds how long the check of a topic delays a command. It is a variable for
// tests, whose machine may be busy.
var SuggestLimit = time.Second

// suggestMost is the largest number of topics that are compared with a name.
const suggestMost = 10_000

// WarnUnused warns of a topic that has no keys and that no node handles, and suggests
// the known topic with the nearest name: the name may be mistyped. It is silent if it
// cannot know, as without the right to read.
func (a *App) WarnUnused(ctx context.Context, c wakebell.Operator, topic string) {
	if text := a.unused(ctx, c, topic); text != "" {
		a.Notef("wakebell: warning: %s\n", output.Escape(text))
	}
}

// RequireTopic returns an error with exit code 3 if a topic is not there: it has no
// timers, dead letters or settings, no node handles it, and it is not listed by topics.
// It returns nil if it cannot know, as without the right to read.
func (a *App) RequireTopic(ctx context.Context, c wakebell.Operator, topic string) error {
	text := a.unused(ctx, c, topic)
	if text == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, SuggestLimit)
	defer cancel()
	full := topic
	if a.RemoteAddress() == "" {
		full = a.Prefix + topic
	}
	read := 0
	for name, err := range c.Topics(ctx, false, wakebelltype.Page{}) {
		if read++; err != nil || name == full || read > suggestMost {
			return nil // it is listed, or may be
		}
	}
	return NotFoundf("%s", text)
}

// unused says that a topic has no keys and no node handles it; empty if it has, or if
// that cannot be known.
func (a *App) unused(ctx context.Context, c wakebell.Operator, topic string) string {
	ctx, cancel := context.WithTimeout(ctx, SuggestLimit)
	defer cancel()
	found, err := c.Overview(ctx, topic)
	if err != nil || len(found) != 1 || found[0].Err != nil {
		return ""
	}
	if o := found[0]; o.Nodes != 0 || o.Stats.Total+o.Stats.Dead > 0 || o.Control != (wakebelltype.Control{}) {
		return ""
	}
	text := fmt.Sprintf("topic %q has no timers, and no node handles it", a.Prefix+topic)
	if near := a.nearest(ctx, c, topic); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return text
}

// nearest returns the known topic whose name differs least from a name, if it differs
// in few letters, as --topic takes it.
func (a *App) nearest(ctx context.Context, c wakebell.Operator, topic string) (near string) {
	prefix := a.Prefix
	if a.RemoteAddress() != "" {
		prefix = "" // Topics returns names without it
	}
	least := min(max(2, len(topic)/4), len(topic)-1) + 1 // not every character may differ
	for name, err := range c.Topics(ctx, false, wakebelltype.Page{Limit: suggestMost}) {
		if err != nil {
			return ""
		}
		bare, ours := strings.CutPrefix(name, prefix)
		if !ours || bare == topic {
			continue
		}
		if d := levenshtein.ComputeDistance(topic, bare); d < least {
			near, least = bare, d
		}
	}
	return near
}
