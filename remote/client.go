package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/outgoing"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/remote/internal/access"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Client schedules, cancels, inspects and handles timers of a System in
// another process. It also publishes to the System's queues, stores its recurring
// schedules and acquires turns at its gates. A Client is safe for concurrent use
// and reconnects when its link breaks.
//
// When the link breaks, requests are sent again until their context ends or the
// link has been down for DialConfig.DeadLink; methods for which this is not safe
// say so. If the context has no deadline, the node has 10 s to carry out a request,
// and the call fails with wakebell.ErrUnavailable if no answer arrives within 15 s.
// The request may have been carried out nevertheless.
type Client struct {
	conn       *grpc.ClientConn
	operations rpc.OperationsClient
	link       *clientLink
	cfg        DialConfig
}

var _ wakebell.TimerClient = (*Client)(nil)

// DefaultDeadLink is the default of DialConfig.DeadLink.
const DefaultDeadLink = 5 * time.Second

// DefaultTurnTTL is the default of DialConfig.TurnTTL.
const DefaultTurnTTL = 10 * time.Second

// DialConfig configures a Client. The zero value connects to a Server on loopback
// that requires no credentials.
type DialConfig struct {
	// Config supplies Token, TLS and MaxMessage. Its other fields apply
	// only to a Server.
	Config

	// DeadLink is how long the link may be down before calls fail with
	// wakebell.ErrUnavailable, even if their deadline is later. Default:
	// DefaultDeadLink.
	DeadLink time.Duration

	// TurnTTL is how long a turn at a gate stays valid without contact between the
	// Client and the node, 1 s to 24 h. Default: DefaultTurnTTL.
	TurnTTL time.Duration

	address string      // of the node
	errs    *dialErrors // of its connections
	edge    *outgoing.Edge
	chain   *payload.Chain // nil: bodies are sent as they are
}

// credentials returns a context whose calls carry the token and the span of ctx.
func (c DialConfig) credentials(ctx context.Context) context.Context {
	for key, value := range c.edge.Tracer.Inject(ctx) {
		ctx = metadata.AppendToOutgoingContext(ctx, key, value)
	}
	if c.Token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.Token)
}

// Dial connects to the Server at address (host:port) and waits until it answers or
// ctx ends. The Client encodes, traces and logs as conn says, which may be nil for the
// defaults and needs no Redis. Its TracerProvider makes a span of each delivery to a
// subscriber: a child of the node's span of the delivery, or linked to the span that
// scheduled the timer if the node makes none. Errors name the address and the cause:
//   - wakebell.ErrInvalid: the address or a field of cfg is invalid.
//   - ErrDenied: the node rejects the token or the certificate.
//   - wakebell.ErrUnavailable: no connection within DeadLink. Dial returns at once
//     if a retry cannot help: the node's certificate is not trusted, or only one
//     end uses TLS.
func Dial(ctx context.Context, address string, conn *connection.Connection, cfg DialConfig) (*Client, error) {
	cfg.Config = cfg.withDefaults()
	if cfg.DeadLink <= 0 {
		cfg.DeadLink = DefaultDeadLink
	}
	if cfg.TurnTTL == 0 {
		cfg.TurnTTL = DefaultTurnTTL
	}
	if cfg.TurnTTL < time.Second || cfg.TurnTTL > 24*time.Hour {
		return nil, argument.Invalid("TurnTTL", "%v, want 1s to 24h", cfg.TurnTTL)
	}
	on, err := opened.Default((*opened.Handle)(conn))
	if err != nil {
		return nil, err
	}
	cfg.logger, cfg.chain = on.Logger, on.Payloads
	cfg.edge = on.Apart() // each request has a field for the span
	if _, port, err := wire.HostPort(address); err != nil || port == 0 {
		return nil, argument.Invalid("address", "%q, want host:port", address)
	}
	if cfg.Token != "" {
		if err := access.CheckToken("Token", cfg.Token); err != nil {
			return nil, err
		}
	}
	cfg.address, cfg.errs = address, &dialErrors{}
	link, err := grpc.NewClient("passthrough:///"+address, append(cfg.errs.options(cfg.Config), grpc.WithKeepaliveParams(wire.Pings))...)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	c := &Client{conn: link, operations: rpc.NewOperationsClient(link), cfg: cfg, link: newClientLink(rpc.NewTimersClient(link), cfg)}
	if err := c.link.wait(ctx); err != nil {
		c.Close()
		return nil, err // it names the node
	}
	return c, nil
}

// Close ends the subscriptions as the ends of their contexts do (see Subscribe), releases
// the turns and closes the link. Calls in flight fail. It takes at most 2 s if the node does
// not answer or a handler goes on.
func (c *Client) Close() {
	c.link.Close()
	_ = c.conn.Close() // it is over either way
}

// Payloads returns connection.Config.Payloads with its limit; nil: none.
func (c *Client) Payloads() *payload.Chain { return c.cfg.chain }

type keyed struct{}

// WithKey returns a context with an idempotency key of 1 to 256 bytes for one call
// of Schedule, Cancel, Schedules.RunNow or Schedules.Backfill. If the call is
// repeated with the same key and arguments within 24 hours, the node returns the
// first answer and does nothing else; with other arguments the call fails with
// wakebell.ErrConflict. Without a key, a Schedule that is sent again replaces its
// own timer, and a timer that was due at once may be delivered twice.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyed{}, key)
}

func keyOf(ctx context.Context) string {
	key, _ := ctx.Value(keyed{}).(string)
	return key
}

// Cancel does what wakebell.Client.Cancel does, for up to 1,000 ids.
func (c *Client) Cancel(ctx context.Context, topic string, ids ...string) ([]wakebelltype.Presence, error) {
	answer, err := call[*messages.CancelResponse](ctx, c, &messages.CancelRequest{Topic: topic, Ids: ids, Key: keyOf(ctx)})
	if err != nil {
		return nil, err
	}
	found := make([]wakebelltype.Presence, len(answer.GetFound()))
	for i, p := range answer.GetFound() {
		found[i] = wakebelltype.Presence(p) //nolint:gosec // numbered alike
	}
	return found, nil
}

// Get does what wakebell.Client.Get does. The headers are sorted by name.
func (c *Client) Get(ctx context.Context, topic, id string) (wakebell.Info, wakebell.Content, error) {
	answer, err := call[*messages.GetTimerResponse](ctx, c, &messages.GetTimerRequest{Topic: topic, Id: id})
	if errors.Is(err, wakebell.ErrTooLarge) {
		rest, failed := call[*messages.GetTimerResponse](ctx, c, &messages.GetTimerRequest{Topic: topic, Id: id, WithoutContent: true})
		if failed == nil { // an earlier node answers whole timers alone
			return infoOf(topic, rest.GetTimer()), wakebell.Content{}, err
		}
	}
	if err != nil {
		return wakebell.Info{}, wakebell.Content{}, err
	}
	return infoOf(topic, answer.GetTimer()), wire.ContentOf(answer.GetTimer().GetContent()), nil
}

// List does what wakebell.Client.List does.
func (c *Client) List(ctx context.Context, topic string, f wakebell.Filter, p wakebelltype.Page) iter.Seq2[wakebell.Info, error] {
	return paging.All(p, func(after string, limit int) ([]wakebell.Info, string, error) {
		request := &messages.ListTimersRequest{Topic: topic, Running: f.Running, Limit: convert.Count(limit), After: after}
		if !f.DueBefore.IsZero() {
			request.DueBefore = timestamppb.New(f.DueBefore)
		}
		answer, err := call[*messages.ListTimersResponse](ctx, c, request)
		if err != nil {
			return nil, "", err
		}
		page := make([]wakebell.Info, len(answer.GetTimers()))
		for i, t := range answer.GetTimers() {
			page[i] = infoOf(topic, t)
		}
		return page, answer.GetNext(), nil
	})
}

// Reschedule does what wakebell.Client.Reschedule does.
func (c *Client) Reschedule(ctx context.Context, topic, id string, when wakebell.ScheduleOption) (wakebelltype.Scheduled, error) {
	planned, err := wakebell.ScheduleMessage(wakebell.NewTopic[[]byte](topic).Draft(nil, when))
	if err != nil {
		return wakebelltype.Scheduled{}, err
	}
	request := &messages.RescheduleRequest{Topic: topic, Id: id}
	switch w := planned.GetWhen().(type) {
	case *messages.ScheduleRequest_At:
		request.When = &messages.RescheduleRequest_At{At: w.At}
	case *messages.ScheduleRequest_In:
		request.When = &messages.RescheduleRequest_In{In: w.In}
	default:
		return wakebelltype.Scheduled{}, argument.Invalid("when", "want In or At")
	}
	answer, err := call[*messages.RescheduleResponse](ctx, c, request)
	if err != nil {
		return wakebelltype.Scheduled{}, err
	}
	return scheduledOf(answer), nil
}

// RunNow does what wakebell.Client.RunNow does.
func (c *Client) RunNow(ctx context.Context, topic, id string) (wakebelltype.Presence, error) {
	answer, err := call[*messages.RunNowResponse](ctx, c, &messages.RunNowRequest{Topic: topic, Id: id})
	if err != nil {
		return wakebelltype.PresenceAbsent, err
	}
	return wakebelltype.Presence(answer.GetFound()), nil //nolint:gosec // numbered alike
}

// Stats does what wakebell.Client.Stats does.
func (c *Client) Stats(ctx context.Context, topic string) (wakebelltype.Stats, error) {
	answer, err := call[*messages.GetTopicStatsResponse](ctx, c, &messages.GetTopicStatsRequest{Topic: topic})
	if err != nil {
		return wakebelltype.Stats{}, err
	}
	return wire.StatsOf(answer.GetStats()), nil
}
