package main

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

// logFlags are --log-format and --log-level.
type logFlags struct{ format, level choice }

func (f *logFlags) register(cmd *cobra.Command) {
	f.format, f.level = oneOf("text", "json"), oneOf("info", "debug", "warn", "error")
	cmd.Flags().Var(&f.format, "log-format", "format of the log on stderr")
	cmd.Flags().Var(&f.level, "log-level", "minimum level to log")
	completeChoice(cmd, "log-format", f.format)
	completeChoice(cmd, "log-level", f.level)
}

// logger returns a logger to w with the format and the level of the flags.
func (f *logFlags) logger(w io.Writer) *slog.Logger {
	return newLogger(w, f.format.value, f.level.value)
}

func newLogger(w io.Writer, format, level string) *slog.Logger {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		least = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: least}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(newJSONEscaper(w), options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
