package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/config"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/files"
	"github.com/wakebell/wakebell/webhook"
)

// postFlags are the flags of node that post deliveries to an HTTP endpoint, of topics and
// queues.
type postFlags struct {
	url     string // empty: none
	secrets string // the file
	ca      string // the file
	allow   string // networks with commas between them
	http    bool
	proxy   bool
	timeout time.Duration // 0: half of the lease, at most webhook.DefaultTimeout
}

func (f *postFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.url, "post", "", "`URL` to post each delivery to, signed with --post-secret-file")
	flags.StringVar(&f.secrets, "post-secret-file", "", "`file` with the secret of --post, whsec_ and Base64; two lines while it is replaced")
	flags.StringVar(&f.ca, "post-ca-file", "", "PEM `file` with the authorities for --post, instead of those of the system")
	flags.StringVar(&f.allow, "post-allow", "", "`networks` that are not public and may be posted to, as loopback,10.1.0.0/16")
	flags.BoolVar(&f.http, "post-http", false, "allow --post with http beyond loopback")
	flags.BoolVar(&f.proxy, "post-proxy", false, "post through the proxy that HTTPS_PROXY or HTTP_PROXY names")
	cli.DurationVar(flags, &f.timeout, "post-timeout", 0, "how long --post waits for an answer; 0: half of a lease, at most 15s")
	cli.MarkList(cmd, "post-allow")
	cli.CompleteFiles(cmd, "post-secret-file", "post-ca-file")
}

const (
	perHostDefault = 100
	perHostLimit   = 10_000
)

func perHostFlag(flags *pflag.FlagSet, n *int) {
	flags.IntVar(n, "post-per-host", perHostDefault, "requests of --post that run at once to a host, 1 to 10,000; 0: no bound")
}

// lease returns how long a lease is.
func (h *handled) lease() time.Duration {
	if h.queue {
		return h.visibility
	}
	return h.tuned.LeaseTTL
}

// webhook returns what the flags say, without the content of files. An error has the
// flag that is wrong.
func (h *handled) webhook() (cfg webhook.Config, flag string, err error) {
	f := &h.post
	cfg = webhook.Config{URL: f.url, SecretFile: f.secrets, AllowHTTP: f.http, ProxyFromEnvironment: f.proxy, Timeout: f.timeout}
	if cfg.Timeout == 0 {
		cfg.Timeout = min(webhook.DefaultTimeout, h.lease()/2)
	}
	for network := range strings.SplitSeq(f.allow, ",") {
		if network = strings.TrimSpace(network); network == "" {
			continue
		}
		var all []netip.Prefix
		if all, err = webhook.ParseNetworks(network); err != nil {
			return cfg, "post-allow", err
		}
		cfg.AllowNetworks = append(cfg.AllowNetworks, all...)
	}
	switch {
	case f.url == "":
		if *f != (postFlags{}) {
			return cfg, "post", errors.New("missing; the other --post flags go with it")
		}
		return cfg, "", nil
	case h.exec != "":
		return cfg, "post", errors.New("does not go with --exec")
	case f.secrets == "":
		return cfg, "post", errors.New("needs --post-secret-file")
	case cfg.Timeout >= h.lease() && (!h.queue || !h.once):
		return cfg, "post-timeout", fmt.Errorf("%s, want less than a lease (%s)", cfg.Timeout, h.lease())
	}
	return cfg, "post", cfg.Validate()
}

// postErrors returns the errors of the flags, with their lines in a file.
func (h *handled) postErrors(file *config.File) []error {
	_, flag, err := h.webhook()
	if err == nil {
		return nil
	}
	wrong := &config.Error{File: file.Name, Field: flag, Text: plain(err)}
	fields := file.Fields
	if h.section != nil {
		wrong.Line, wrong.Field = h.section.Line, strings.Join(h.path(), ".")+"."+flag
		fields = slices.Concat(h.section.Fields, fields)
	}
	if i := slices.IndexFunc(fields, func(f config.Field) bool { return f.Name == flag }); i >= 0 {
		wrong.Line = fields[i].Line
	}
	return []error{wrong}
}

// plain returns the text of an error, which the name of a flag precedes.
func plain(err error) string {
	return strings.ReplaceAll(err.Error(), wakebell.ErrInvalid.Error()+": ", "")
}

// posting has what the webhooks of a node share.
type posting struct {
	hosts  *webhook.Hosts // nil: no bound
	log    *slog.Logger
	client atomic.Pointer[wakebell.Client] // of the System, once there is one

	mu     sync.Mutex
	opened []*webhook.Webhook
}

func newPosting(perHost int, log *slog.Logger) (*posting, error) {
	if perHost < 0 || perHost > perHostLimit {
		return nil, cli.Usagef("--post-per-host: %d is not within 0 and %d", perHost, perHostLimit)
	}
	p := &posting{log: log}
	if perHost > 0 {
		p.hosts = &webhook.Hosts{Max: perHost}
	}
	return p, nil
}

// close closes the idle connections of all webhooks.
func (p *posting) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.opened {
		w.Close()
	}
}

// openPost opens the webhook of --post, and does nothing without one.
func (h *handled) openPost(p *posting) error {
	cfg, flag, err := h.webhook()
	if err != nil {
		return cli.Usagef("--%s of %q: %s", flag, h.name, plain(err))
	}
	if h.post.url == "" {
		return nil
	}
	cfg.Hosts, cfg.Logger = p.hosts, p.log.With("topic", h.name)
	if !h.queue && (h.tuned.PerKey > 0 || h.tuned.KeyRateLimit > 0) {
		cfg.Key = p.keyOf(h.name)
	}
	if h.post.ca != "" {
		pem, err := files.Read(h.post.ca, files.CertificatesLimit)
		if err != nil {
			return fmt.Errorf("--post-ca-file of %q: %w", h.name, err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return fmt.Errorf("--post-ca-file of %q: no certificate in %s", h.name, h.post.ca)
		}
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	}
	if h.hook, err = webhook.New(cfg); err != nil {
		return fmt.Errorf("--post of %q: %w", h.name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened = append(p.opened, h.hook)
	return nil
}

// keyOf returns a function that returns the key of a timer in a topic. Deliveries do not
// have it.
func (p *posting) keyOf(topic string) func(context.Context, wakebell.Meta) string {
	return func(ctx context.Context, m wakebell.Meta) string {
		client := p.client.Load()
		if client == nil {
			return ""
		}
		info, _, err := client.Get(ctx, topic, m.ID)
		if err != nil {
			return "" // it is for information
		}
		return info.Key
	}
}
