package cli

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

// deliveryVariables are set for the command that handles a timer, a message or a turn.
// A command that it runs must not warn of them.
var deliveryVariables = []string{
	"TOPIC", "QUEUE", "ID", "KEY", "ATTEMPT", "ACTIVATION", "DELIVERED_AT", "LATENESS_MS",
	"CONTENT_TYPE", "CORRELATION_ID", "REPLY_TO", "GATE", "FENCE",
}

// foreignVariable matches variables that belong to others: the headers of a timer, those
// that Kubernetes sets for services whose names begin with wakebell, the token of the
// clients' examples, and those of this project's tests and scripts.
var foreignVariable = regexp.MustCompile(`^WAKEBELL_(HEADER_.*|.*_SERVICE_(HOST|PORT).*|([A-Z0-9]+_)*PORT(_[0-9]+_.*)?|TOKEN|TEST_.*|FAULTS_.*|BASELINE|SITE_.*)$`)

// warnOfUnknown warns of each variable that begins with WAKEBELL_ and is not one of any
// command: it may be mistyped.
func warnOfUnknown(cmd *cobra.Command) {
	if strings.HasPrefix(cmd.Name(), "__") { // a shell that completes
		return
	}
	var known []string
	for _, name := range deliveryVariables {
		known = append(known, "WAKEBELL_"+name)
	}
	known = append(known, variablesOf(cmd.Root())...)
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "WAKEBELL_") || slices.Contains(known, name) || foreignVariable.MatchString(name) {
			continue
		}
		text := fmt.Sprintf("warning: unknown variable %s", name)
		if near := NearestName(name, known); near != "" {
			text += fmt.Sprintf("; did you mean %s?", near)
		}
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "wakebell: %s\n", output.Escape(text))
	}
}

// variablesOf returns the variables of the flags of a command and of those below it.
func variablesOf(cmd *cobra.Command) (names []string) {
	add := func(f *pflag.Flag) {
		if HasVariable(f) {
			names = append(names, Variable(cmd, f))
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.PersistentFlags().VisitAll(add)
	for _, sub := range cmd.Commands() {
		names = append(names, variablesOf(sub)...)
	}
	return names
}
