package contents

import (
	"bufio"
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// stream collects a stream: entries, the last ID, which may be that of an entry that is
// gone, and consumer groups with what is pending. The elements are whole commands.
func (k *key) stream(m *miniredis.Miniredis) error {
	entries, err := m.DB(0).Stream(k.name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		k.after = append(k.after, append([]string{"XADD", k.name, e.ID}, e.Values...))
	}
	info, err := ask(m, "XINFO", "STREAM", k.name)
	if err != nil {
		return err
	}
	last := field(info, "last-generated-id")
	if last == "" {
		last = "0-1" // of a stream that never had an entry
	}
	if len(entries) == 0 || entries[len(entries)-1].ID != last {
		k.after = append(k.after, []string{"XADD", k.name, last, "x", "x"}, []string{"XDEL", k.name, last})
	}
	groups, err := ask(m, "XINFO", "GROUPS", k.name)
	for _, g := range groups {
		g, _ := g.([]any)
		err = errors.Join(err, k.group(m, field(g, "name"), field(g, "last-delivered-id")))
	}
	return err
}

func (k *key) group(m *miniredis.Miniredis, name, last string) error {
	k.after = append(k.after, []string{"XGROUP", "CREATE", k.name, name, last})
	consumers, err := ask(m, "XINFO", "CONSUMERS", k.name, name)
	if err != nil {
		return err
	}
	for _, c := range consumers {
		c, _ := c.([]any)
		k.after = append(k.after, []string{"XGROUP", "CREATECONSUMER", k.name, name, field(c, "name")})
	}
	pending, err := ask(m, "XPENDING", k.name, name, "-", "+", "1000000000")
	if err != nil {
		return err
	}
	now, err := ask(m, "TIME")
	if err != nil || len(now) != 2 {
		return errors.Join(errReply, err)
	}
	seconds, err := strconv.ParseInt(text(now[0]), 10, 64)
	if err != nil {
		return err
	}
	micros, err := strconv.ParseInt(text(now[1]), 10, 64)
	if err != nil {
		return err
	}
	for _, p := range pending {
		p, _ := p.([]any)
		if len(p) != 4 {
			return errReply
		}
		idle, _ := p[2].(int)
		at := time.Unix(seconds, micros*1000).Add(-time.Duration(idle) * time.Millisecond)
		k.after = append(k.after, []string{
			"XCLAIM", k.name, name, text(p[1]), "0", text(p[0]), "TIME", strconv.FormatInt(at.UnixMilli(), 10), "RETRYCOUNT", text(p[3]), "FORCE", "JUSTID",
		})
	}
	return nil
}

var errReply = errors.New("unexpected reply of the server in this process")

// ask returns the array with which the server replies.
func ask(m *miniredis.Miniredis, args ...string) ([]any, error) {
	all, err := reply(m, args...)
	array, _ := all.([]any) // nil: an empty one
	return array, err
}

// reply returns that of the server to a command.
func reply(m *miniredis.Miniredis, args ...string) (any, error) {
	var b bytes.Buffer
	peer := server.NewPeer(bufio.NewWriter(&b))
	m.Server().Dispatch(peer, args)
	peer.Flush()
	return server.ParseReply(bufio.NewReader(&b))
}

// field returns a field of a map that is an array.
func field(pairs []any, name string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == name {
			return text(pairs[i+1])
		}
	}
	return ""
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	}
	return ""
}
