package cli

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

// LogFlags are --log-format and --log-level.
type LogFlags struct {
	format, level Choice
	least         slog.LevelVar
}

// Register adds the flags.
func (f *LogFlags) Register(cmd *cobra.Command) {
	f.format, f.level = OneOf("text", "json"), OneOf("info", "debug", "warn", "error")
	cmd.Flags().Var(&f.format, "log-format", "format of the log on stderr")
	cmd.Flags().Var(&f.level, "log-level", "minimum level to log")
	CompleteChoice(cmd, "log-format", f.format)
	CompleteChoice(cmd, "log-level", f.level)
}

// Logger returns a logger to w with the format and the level of the flags.
func (f *LogFlags) Logger(w io.Writer) *slog.Logger {
	f.SetLevel(f.level.value)
	return newLogger(w, f.format.value, &f.least)
}

// JSON reports whether the log is in JSON.
func (f *LogFlags) JSON() bool { return f.format.value == "json" }

// SetLevel sets the level of the logger: debug, info, warn or error.
func (f *LogFlags) SetLevel(level string) { f.least.Set(levelOf(level)) }

// NewLogger returns a logger to w. The format is json or text.
func NewLogger(w io.Writer, format, level string) *slog.Logger {
	return newLogger(w, format, levelOf(level))
}

func levelOf(text string) (level slog.Level) {
	if err := level.UnmarshalText([]byte(text)); err != nil {
		return slog.LevelInfo
	}
	return level
}

// durationsAsText writes durations in JSON as in text: "1.5s", in place of nanoseconds.
func durationsAsText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

func newLogger(w io.Writer, format string, least slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: least}
	if format == "json" {
		options.ReplaceAttr = durationsAsText
		return slog.New(slog.NewJSONHandler(output.NewJSONEscaper(w), options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
