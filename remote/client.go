package remote

import (
	"context"
	"fmt"
	"iter"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/access"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// Client schedules, cancels, inspects and handles timers of a System in
// another process, publishes to its queues, keeps its recurring schedules and
// takes turns at its gates. It is safe for concurrent use. A link that breaks is made
// again by itself. A call whose context has no deadline gives the node 10 s; when
// no answer has come after 15 s, over a link that is well, it fails with
// wakebell.ErrUnavailable, and may or may not have been carried out.
type Client struct {
	conn       *grpc.ClientConn
	operations rpc.OperationsClient
	link       *clientLink
	cfg        DialConfig
}

var _ wakebell.Timers = (*Client)(nil)

// DefaultDeadLink is how long a link may be down before calls fail.
const DefaultDeadLink = 5 * time.Second

// DefaultTurnTTL is how long a turn at a gate outlives its link.
const DefaultTurnTTL = 10 * time.Second

// DialConfig says how to reach a Server. The zero value is for one on loopback
// that asks for no credentials.
type DialConfig struct {
	// Config has Token, TLS, MaxMessage and Logger; the rest is a Server's.
	Config

	// DeadLink is how long the link may be down before calls fail with
	// wakebell.ErrUnavailable, whatever time they have left; default
	// DefaultDeadLink.
	DeadLink time.Duration

	// TurnTTL is how long turns at gates last at most without a word between
	// the node and the Client, 1 s to 24 h; default DefaultTurnTTL.
	TurnTTL time.Duration

	address string // of the node
	trace   *trace // of its connections
}

// credentials is ctx for a call that shows the token.
func (c DialConfig) credentials(ctx context.Context) context.Context {
	if c.Token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.Token)
}

// Dial connects to a Server at host:port, and waits until it answers or ctx
// ends. Errors name the node and the cause: wakebell.ErrInvalid; ErrDenied, where
// the token or the certificate is refused; or wakebell.ErrUnavailable, after
// DeadLink, and at once where trying again cannot help: the node's certificate is
// not trusted, or one end speaks TLS and the other does not.
func Dial(ctx context.Context, address string, cfg DialConfig) (*Client, error) {
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
	if _, port, err := wire.HostPort(address); err != nil || port == 0 {
		return nil, argument.Invalid("address", "%q is no host:port", address)
	}
	if cfg.Token != "" {
		if err := access.CheckToken("Token", cfg.Token); err != nil {
			return nil, err
		}
	}
	cfg.address, cfg.trace = address, &trace{}
	conn, err := grpc.NewClient("passthrough:///"+address, append(cfg.trace.options(cfg.Config), grpc.WithKeepaliveParams(wire.Pings))...)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	c := &Client{conn: conn, operations: rpc.NewOperationsClient(conn), cfg: cfg, link: newClientLink(rpc.NewTimersClient(conn), cfg)}
	if err := c.link.wait(ctx); err != nil {
		c.Close()
		return nil, err // it names the node
	}
	return c, nil
}

// Close ends the link. Calls that are under way fail; turns are given back, and
// what subscribers hold after a second.
func (c *Client) Close() {
	c.link.Close()
	_ = c.conn.Close() // it is over either way
}

type keyed struct{}

// WithKey is ctx with an idempotency key, of 1 to 256 bytes, for the one call of
// Schedule or Cancel that is made with it: made again within 24 hours, with the
// same arguments, it is not carried out again but answered as it was first.
// Without a key a Schedule that is sent again is replaced by itself; one that
// was due at once may then be delivered twice.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyed{}, key)
}

func keyOf(ctx context.Context) string {
	key, _ := ctx.Value(keyed{}).(string)
	return key
}

// Schedule is that of wakebell.Client. An error may come from any of the drafts;
// the same call may be made again.
func (c *Client) Schedule(ctx context.Context, drafts ...wakebell.Draft) ([]wakebell.Scheduled, error) {
	timers := make([]*messages.ScheduleRequest, len(drafts))
	for i, d := range drafts {
		var err error
		if timers[i], err = wakebell.ScheduleMessage(d); err != nil {
			return nil, fmt.Errorf("timer %d: %w", i, err)
		}
	}
	if len(timers) == 1 {
		timers[0].Key = keyOf(ctx)
		answer, err := call[*messages.ScheduleResponse](ctx, c, timers[0])
		if err != nil {
			return nil, err
		}
		return []wakebell.Scheduled{scheduledOf(answer)}, nil
	}
	done := make([]wakebell.Scheduled, 0, len(timers))
	for len(timers) > 0 {
		n := c.fitting(timers)
		request := &messages.ScheduleBatchRequest{Timers: timers[:n]}
		if key := keyOf(ctx); key != "" {
			request.Key = fmt.Sprintf("%s#%d", key, len(done))
		}
		answer, err := call[*messages.ScheduleBatchResponse](ctx, c, request)
		if err != nil {
			return nil, err
		}
		for _, s := range answer.GetTimers() {
			done = append(done, scheduledOf(s))
		}
		timers = timers[n:]
	}
	return done, nil
}

// maxBatchTimers is how many timers the gateway takes in a request.
const maxBatchTimers = 1000

// fitting is how many timers go in one request.
func (c *Client) fitting(timers []*messages.ScheduleRequest) int {
	size := wire.FrameOverhead
	for i, t := range timers {
		size += len(t.GetBody()) + len(t.GetId()) + len(t.GetTopic()) + wire.EnvelopeOverhead
		for key, value := range t.GetHeaders() {
			size += len(key) + len(value) + wire.EnvelopeOverhead
		}
		if i == maxBatchTimers || (i > 0 && size > c.cfg.MaxMessage/2) {
			return i
		}
	}
	return len(timers)
}

// Cancel is that of wakebell.Client, for up to 1,000 ids.
func (c *Client) Cancel(ctx context.Context, topic string, ids ...string) ([]wakebell.Presence, error) {
	answer, err := call[*messages.CancelResponse](ctx, c, &messages.CancelRequest{Topic: topic, Ids: ids, Key: keyOf(ctx)})
	if err != nil {
		return nil, err
	}
	found := make([]wakebell.Presence, len(answer.GetFound()))
	for i, p := range answer.GetFound() {
		found[i] = wakebell.Presence(p) //nolint:gosec // numbered alike
	}
	return found, nil
}

// Get is that of wakebell.Client. The headers are in the order of their names.
func (c *Client) Get(ctx context.Context, topic, id string) (wakebell.Info, wakebell.Content, error) {
	answer, err := call[*messages.GetTimerResponse](ctx, c, &messages.GetTimerRequest{Topic: topic, Id: id})
	if err != nil {
		return wakebell.Info{}, wakebell.Content{}, err
	}
	return infoOf(topic, answer.GetTimer()), wire.ContentOf(answer.GetTimer().GetContent()), nil
}

// List is that of wakebell.Client.
func (c *Client) List(ctx context.Context, topic string, f wakebell.Filter) iter.Seq2[wakebell.Info, error] {
	return func(yield func(wakebell.Info, error) bool) {
		request := &messages.ListTimersRequest{Topic: topic, Running: f.Running}
		if !f.DueBefore.IsZero() {
			request.DueBefore = timestamppb.New(f.DueBefore)
		}
		for {
			page, err := call[*messages.ListTimersResponse](ctx, c, request)
			if err != nil {
				yield(wakebell.Info{}, err)
				return
			}
			for _, t := range page.GetTimers() {
				if !yield(infoOf(topic, t), nil) {
					return
				}
			}
			if page.GetNext() == "" {
				return
			}
			request = &messages.ListTimersRequest{Topic: topic, Running: f.Running, DueBefore: request.GetDueBefore(), After: page.GetNext()}
		}
	}
}

// Reschedule is that of wakebell.Client.
func (c *Client) Reschedule(ctx context.Context, topic, id string, when wakebell.ScheduleOption) (wakebell.Scheduled, error) {
	planned, err := wakebell.ScheduleMessage(wakebell.NewTopic[[]byte](topic).Draft(nil, when))
	if err != nil {
		return wakebell.Scheduled{}, err
	}
	request := &messages.RescheduleRequest{Topic: topic, Id: id}
	switch w := planned.GetWhen().(type) {
	case *messages.ScheduleRequest_At:
		request.When = &messages.RescheduleRequest_At{At: w.At}
	case *messages.ScheduleRequest_In:
		request.When = &messages.RescheduleRequest_In{In: w.In}
	default:
		return wakebell.Scheduled{}, argument.Invalid("when", "want In or At")
	}
	answer, err := call[*messages.RescheduleResponse](ctx, c, request)
	if err != nil {
		return wakebell.Scheduled{}, err
	}
	return scheduledOf(answer), nil
}

// RunNow is that of wakebell.Client.
func (c *Client) RunNow(ctx context.Context, topic, id string) (wakebell.Presence, error) {
	answer, err := call[*messages.RunNowResponse](ctx, c, &messages.RunNowRequest{Topic: topic, Id: id})
	if err != nil {
		return wakebell.Absent, err
	}
	return wakebell.Presence(answer.GetFound()), nil //nolint:gosec // numbered alike
}

// Stats is that of wakebell.Client.
func (c *Client) Stats(ctx context.Context, topic string) (wakebell.Stats, error) {
	answer, err := call[*messages.GetTopicStatsResponse](ctx, c, &messages.GetTopicStatsRequest{Topic: topic})
	if err != nil {
		return wakebell.Stats{}, err
	}
	return wire.StatsOf(answer.GetStats()), nil
}
