package node

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

// shellHandler returns a handler that runs a shell command.
func shellHandler(a *cli.App, script string) rawHandler {
	return func(ctx context.Context, t wakebell.Timer[[]byte]) error {
		return a.RunShell(ctx, script, bytes.NewReader(t.Body), variables(t))
	}
}

// variables returns the environment variables that describe a delivery.
func variables(t wakebell.Timer[[]byte]) []string {
	var list []string
	set := func(name, value string) {
		// An environment cannot hold NUL.
		list = append(list, "WAKEBELL_"+name+"="+strings.ReplaceAll(value, "\x00", "\uFFFD"))
	}
	set("TOPIC", t.Topic)
	set("ID", t.ID)
	set("ATTEMPT", strconv.Itoa(t.Attempt))
	set("ACTIVATION", output.Stamp(t.Activation))
	set("DELIVERED_AT", output.Stamp(t.Delivered))
	set("LATENESS_MS", strconv.FormatFloat(output.Millis(t.Lateness()), 'f', -1, 64))
	set("CONTENT_TYPE", t.ContentType)
	set("CORRELATION_ID", t.CorrelationID)
	set("REPLY_TO", t.ReplyTo)
	for _, h := range t.Headers {
		set("HEADER_"+upperSnake(h.Key), h.Value)
	}
	return list
}

func upperSnake(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		default:
			return '_'
		}
	}, name)
}
