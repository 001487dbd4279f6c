// Package reminder has what a reminder is as a timer: its id and its body.
package reminder

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/wakebell/wakebell/messages"
)

// Recipient is who is reminded.
type Recipient struct {
	// ID is the id of an actor's PID, or the identity of one of a cluster.
	ID string
	// Address is where the actor is; empty: at the node that keeps the reminder.
	Address string
	// Kind is that of an identity; empty: an actor.
	Kind string
}

// String is for people: "cart-17", "cart-17 at 10.0.0.5:7070", "cart 17".
func (r Recipient) String() string {
	switch {
	case r.Kind != "":
		return r.Kind + " " + r.ID
	case r.Address != "":
		return r.ID + " at " + r.Address
	default:
		return r.ID
	}
}

// ErrAutomatic says that an actor has a name that protoactor gave it.
var ErrAutomatic = errors.New("an automatic name, which names another actor after a restart: spawn it with SpawnNamed, and so all above it")

// Validate says whether a reminder can be kept for the recipient.
func (r Recipient) Validate() error {
	switch {
	case r.ID == "":
		return errors.New("the recipient has no id")
	case r.Kind != "" && r.Address != "":
		return errors.New("an identity has no address")
	case !utf8.ValidString(r.ID), !utf8.ValidString(r.Address), !utf8.ValidString(r.Kind):
		return errors.New("the recipient is not UTF-8")
	case r.Kind == "" && strings.Contains(r.ID, "$"):
		// Names of protoactor's begin with it ("$1"), or have it behind a prefix
		// ("cart$1"); a child's id has that of its parent before its own.
		return fmt.Errorf("actor %q: %w", r.ID, ErrAutomatic)
	}
	return nil
}

// The first parts of ids.
const (
	here     = "actor"
	at       = "at"
	identity = "identity"
)

// ID is the id of a reminder. Its parts are escaped, so that no two reminders
// have the same.
func ID(to Recipient, name string) string {
	var parts []string
	switch {
	case to.Kind != "":
		parts = []string{identity, to.Kind, to.ID, name}
	case to.Address != "":
		parts = []string{at, to.Address, to.ID, name}
	default:
		parts = []string{here, to.ID, name}
	}
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// Parse is the inverse of ID; false: it is no id of a reminder.
func Parse(id string) (to Recipient, name string, ok bool) {
	parts := strings.Split(id, "/")
	for i := range parts {
		part, err := url.PathUnescape(parts[i])
		if err != nil {
			return Recipient{}, "", false
		}
		parts[i] = part
	}
	switch {
	case len(parts) == 3 && parts[0] == here:
		to, name = Recipient{ID: parts[1]}, parts[2]
	case len(parts) == 4 && parts[0] == at:
		to, name = Recipient{Address: parts[1], ID: parts[2]}, parts[3]
	case len(parts) == 4 && parts[0] == identity:
		to, name = Recipient{Kind: parts[1], ID: parts[2]}, parts[3]
	}
	if to.Validate() != nil || name == "" || ID(to, name) != id {
		return Recipient{}, "", false
	}
	return to, name, true
}

// Body is what a reminder is kept as.
func Body(to Recipient, m *messages.KeptReminder) *messages.KeptReminder {
	m.To = &messages.Recipient{Id: to.ID, Address: to.Address, Kind: to.Kind}
	return m
}

// Read tells who is to be reminded, or why nobody can be.
func Read(m *messages.KeptReminder) (Recipient, error) {
	to := Recipient{ID: m.GetTo().GetId(), Address: m.GetTo().GetAddress(), Kind: m.GetTo().GetKind()}
	switch {
	case m.GetName() == "":
		return to, errors.New("the reminder has no name")
	case m.GetMessage().MessageName() == "":
		return to, errors.New("the reminder has no message")
	}
	return to, to.Validate()
}
