package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/guard"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Timers inspects and changes topics and their timers. *wakebell.Client and
// *remote.Client implement it.
type Timers interface {
	wakebell.TimerClient
	wakebell.Operator
	wakebell.Waiter
}

// Queues inspects and changes queues. *queue.Client and *remote.Queues implement it.
type Queues interface {
	queue.Operator
	queue.Publisher
}

// Operators are what the dashboard shows and changes. Timers is required. The pages
// of the others exist only if they are set.
type Operators struct {
	Timers    Timers
	Queues    Queues
	Schedules recurring.Operator
	Gates     gate.Operator
}

// Principal names the person or program that sent a request. The audit
// records it. An Authorize function may return any name.
type Principal string

// Role says what a principal may do.
type Role int

const (
	// RoleNone permits nothing.
	RoleNone Role = iota
	// RoleViewer permits reading.
	RoleViewer
	// RoleOperator permits reading and, with Config.Writable, changes.
	RoleOperator
)

// String returns "none", "viewer" or "operator".
func (r Role) String() string {
	switch r {
	case RoleViewer:
		return "viewer"
	case RoleOperator:
		return "operator"
	default:
		return "none"
	}
}

// ErrUnauthenticated is returned by an Authorize function for a request without
// valid credentials. The dashboard answers 401; other errors are answered with 403.
var ErrUnauthenticated = errors.New("no valid credentials")

// Payload is a body with its headers that a page is about to show.
type Payload struct {
	Topic string // of the timer or dead letter; empty for a message of a queue
	Queue string // of the message; empty for a timer
	ID    string
	wakebell.Content
}

// Config configures a dashboard. The zero value serves programs on the same machine
// and permits no changes.
type Config struct {
	// Path is the path under which browsers reach the dashboard, such as
	// "/admin/wakebell". Default: the root. A reverse proxy may forward requests with
	// Path or without it.
	Path string

	// Authorize decides who sent a request and what the principal may do, for example
	// from the headers of a single sign-on proxy. It is called for every request
	// except those for style sheets and scripts, and again every 20 s while a page
	// follows changes.
	Authorize func(*http.Request) (Principal, Role, error)

	// Credentials are accepted by HTTP basic authentication, and their secrets as
	// bearer tokens too; see ReadCredentials. Authorize and Credentials exclude each
	// other. Without both, only requests from this machine with a loopback address as
	// their Host, and without headers of a proxy, are served, as operator.
	Credentials []Credential

	// Writable permits changes by operators. Without it everyone is a viewer.
	Writable bool

	// TrustedOrigins are further origins, such as "https://ops.example.com", whose
	// pages may send changes. Set it if a reverse proxy rewrites the Host header.
	TrustedOrigins []string

	// HidePayloads shows neither bodies nor the values of headers, except the id of a trace.
	HidePayloads bool

	// Redact, if not nil, returns what is shown instead of a payload. It is called
	// from several goroutines, and must not change the slices that it receives. With
	// Redact or HidePayloads, a payload cannot be edited.
	Redact func(Payload) wakebell.Content

	// QueueNames are queues that the page of queues lists beside those that Redis lists: to
	// which Wakebell published, or which a node handled. Other queues are reached by their
	// names.
	QueueNames []wakebelltype.QueueKeys

	// TraceURL is the address of a trace in your tracing system, with {trace} in place
	// of the trace id. Timers with a traceparent header link to it.
	TraceURL string
}

// Validate reports all that is wrong with the configuration. Errors wrap
// wakebell.ErrInvalid.
func (c *Config) Validate() error {
	var errs []error
	invalid := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{wakebell.ErrInvalid}, args...)...))
	}
	if p := c.Path; p != "" && (!strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.ContainsAny(p, "?#%\"'<> \\")) {
		invalid("Path: %q, want a path such as /wakebell", p)
	}
	if c.Authorize != nil && c.Credentials != nil {
		invalid("Authorize and Credentials: set at most one")
	}
	if c.Credentials != nil && len(c.Credentials) == 0 {
		invalid("Credentials: empty; want at least one")
	}
	for i, cred := range c.Credentials {
		if err := cred.validate(); err != nil {
			invalid("Credentials: number %d: %v", i, err)
		}
	}
	for _, origin := range c.TrustedOrigins {
		if err := guard.CheckOrigin(origin); err != nil {
			invalid("TrustedOrigins: %v", err)
		}
	}
	if c.TraceURL != "" {
		u, err := url.Parse(strings.ReplaceAll(c.TraceURL, "{trace}", "0"))
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || !strings.Contains(c.TraceURL, "{trace}") {
			invalid("TraceURL: %q, want an http or https address with {trace}", c.TraceURL)
		}
	}
	return errors.Join(errs...)
}
