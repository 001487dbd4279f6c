package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

const (
	healthTimeout = 5 * time.Second
	// healthBody bounds what is read of an answer.
	healthBody = 1 << 20
)

// HealthCommand returns the command health, which container images run.
func HealthCommand(a *cli.App) *cobra.Command {
	var live bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "health [ADDRESS]",
		Short: "Ask a node or a beat with --health whether it is ready",
		Long: `Asks a node or a beat that runs with --health whether it is ready, or with --live
whether it is live. ADDRESS is that of --health, 127.0.0.1:8080 by default. It prints
the problems.

Exit codes: 0 it is; 1 it is not, or does not answer.`,
		Example: `  wakebell health
  wakebell health --live 127.0.0.1:9090`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().BoolVar(&live, "live", false, "ask for liveness instead of readiness")
	cli.DurationVar(cmd.Flags(), &timeout, "timeout", healthTimeout, "wait at most this `duration` for the answer")
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		address := "127.0.0.1:8080"
		if len(args) > 0 {
			address = args[0]
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		problems, err := askHealth(ctx, address, live)
		for _, problem := range problems {
			a.Notef("%s\n", output.Escape(problem))
		}
		if err != nil {
			return err
		}
		if live {
			return a.Printf("live\n")
		}
		return a.Printf("ready\n")
	})
	return cmd
}

// askHealth returns the problems of a node, and an error unless it is ready or, with
// live, live.
func askHealth(ctx context.Context, address string, live bool) (problems []string, err error) {
	of := url.URL{Scheme: "http", Host: address, Path: "/readyz"}
	state := "ready"
	if live {
		of.Path, state = "/livez", "live"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, of.String(), nil)
	if err != nil {
		return nil, cli.Usagef("%q is not an address: want host:port", address)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", address, err)
	}
	defer func() { _ = response.Body.Close() }()
	var view struct{ Problems []string }
	if err := json.NewDecoder(io.LimitReader(response.Body, healthBody)).Decode(&view); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", address, err)
	}
	if response.StatusCode != http.StatusOK {
		return view.Problems, fmt.Errorf("the node at %s is not %s: %s", address, state, strings.ToLower(response.Status))
	}
	return view.Problems, nil
}
