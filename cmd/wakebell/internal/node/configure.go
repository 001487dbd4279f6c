package node

import (
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/config"
	"github.com/wakebell/wakebell/connection"
)

// configure sets the flags that are not given to the fields of the file of --config,
// and the topics and queues to handle.
func (f *nodeFlags) configure(cmd *cobra.Command) error {
	given := cli.Given(cmd)
	loaded, flags, err := load(f.config, given)
	if err != nil {
		return err
	}
	flags.VisitAll(func(from *pflag.Flag) {
		_, skipped := given[from.Name]
		if to := cmd.Flags().Lookup(from.Name); to != nil && from.Changed && !skipped {
			err = errors.Join(err, cli.SetFlag(cmd.Flags(), to, cli.FlagValues(from)))
		}
	})
	f.handled, f.top, f.given = loaded.handled, loaded.top, given
	return err
}

// load returns the flags of node with given values and, of the others, those of a
// file; an empty name stands for no file.
func load(name string, given map[string][]string) (*nodeFlags, *pflag.FlagSet, error) {
	a := &cli.App{}
	root := &cobra.Command{}
	a.GlobalFlags(root)
	cmd, f := newCommand(a)
	root.AddCommand(cmd)
	cmd.InheritedFlags() // adds them to Flags
	flags := cmd.Flags()
	for flag, values := range given {
		if to := flags.Lookup(flag); to != nil && values != nil {
			if err := cli.SetFlag(flags, to, values); err != nil {
				return nil, nil, err
			}
		}
	}
	file := &config.File{}
	if name != "" {
		var err error
		if file, err = config.Read(name); err != nil {
			return nil, nil, cli.Usagef("%v", err)
		}
	}
	errs := file.Set(flags, file.Fields, given)
	errs = append(errs, f.addHandled(file, given)...)
	if len(errs) == 0 && name != "" {
		errs = f.validate(a, file)
	}
	if len(errs) > 0 {
		return nil, nil, cli.Usagef("%v", config.Join(errs))
	}
	f.top = map[string]string{}
	flags.VisitAll(func(flag *pflag.Flag) { f.top[flag.Name] = flag.Value.String() })
	return f, flags, nil
}

// addHandled sets the topics and queues to those of the flags or, without them, to
// the sections of the file.
func (f *nodeFlags) addHandled(file *config.File, given map[string][]string) (errs []error) {
	add := func(flag string, names *[]string, sections []config.Section, queue bool) {
		_, named := given[flag]
		for i := range sections {
			section := &sections[i]
			if !named {
				_ = f.flags.Set(flag, section.Name) // it takes every text, and appends to names
			}
			// Also of a section that --topic or --queue leaves out.
			h := newHandled(section.Name, queue)
			errs = append(errs, file.Set(h.flags, section.Fields, given, h.path()...)...)
		}
		for _, name := range *names {
			h := newHandled(name, queue)
			h.flags.VisitAll(func(to *pflag.Flag) {
				if from := f.flags.Lookup(to.Name); from.Changed {
					_ = cli.SetFlag(h.flags, to, cli.FlagValues(from)) // the value of an equal flag
				}
			})
			if i := slices.IndexFunc(sections, func(s config.Section) bool { return s.Name == name }); i >= 0 {
				h.section = &sections[i]
				file.Set(h.flags, h.section.Fields, given, h.path()...) // its errors are known
			}
			f.handled = append(f.handled, h)
		}
	}
	add("topic", &f.topics, file.Topics, false)
	add("queue", &f.queues, file.Queues, true)
	return errs
}

// validate checks the bounds of all values, and what New checks. An error names the
// field that is wrong also with defaults for all others, or else the section.
func (f *nodeFlags) validate(a *cli.App, file *config.File) (errs []error) {
	if err := try(a, f.connection(connection.Config{}), f.systemConfig(nil)); err != nil {
		errs = append(errs, blame(file, err, file.Fields, nil, func(one config.Field) error {
			cmd, alone := newCommand(&cli.App{})
			file.Set(cmd.Flags(), []config.Field{one}, nil)
			return try(&cli.App{}, alone.connection(connection.Config{}), alone.systemConfig(nil))
		})...)
	}
	names := map[string]bool{}
	for _, h := range f.handled {
		line := 0
		if h.section != nil {
			line = h.section.Line
		}
		if names[h.name] {
			errs = append(errs, &config.Error{File: file.Name, Line: line, Field: strings.Join(h.path(), "."), Text: "twice, or a topic and a queue; want one of them"})
		}
		names[h.name] = true
		errs = append(errs, h.postErrors(file)...)
		if err := try(a, connection.Config{}, wakebell.Config{}, h); err != nil {
			errs = append(errs, blame(file, err, file.Fields, h, func(one config.Field) error {
				alone := newHandled("x", h.queue)
				file.Set(alone.flags, []config.Field{one}, nil)
				return try(&cli.App{}, connection.Config{}, wakebell.Config{}, alone)
			})...)
		}
	}
	return errs
}

// blame returns the errors of the fields that are wrong alone, in the section of a
// topic or queue or outside of sections. Without any, err is that of the whole section,
// or of the file.
func blame(file *config.File, err error, fields []config.Field, of *handled, alone func(config.Field) error) (errs []error) {
	path, line := "", 0
	try := func(fields []config.Field, path string) {
		for _, field := range fields {
			if wrong := alone(field); wrong != nil {
				errs = append(errs, &config.Error{File: file.Name, Line: field.Line, Field: path + field.Name, Text: wrong.Error()})
			}
		}
	}
	if of != nil {
		path = strings.Join(of.path(), ".")
		if of.section != nil {
			line = of.section.Line
			try(of.section.Fields, path+".")
		}
	}
	if errs == nil {
		try(fields, "")
	}
	if errs == nil {
		errs = append(errs, &config.Error{File: file.Name, Line: line, Field: path, Text: err.Error()})
	}
	return errs
}

// try returns the error of a System with these topics and queues.
func try(a *cli.App, on connection.Config, cfg wakebell.Config, all ...*handled) error {
	on.Prefix, on.Keys, on.Logger = a.Prefix, a.Keys, slog.New(slog.DiscardHandler)
	for _, h := range all {
		cfg.Handlers = append(cfg.Handlers, h.handler(a, nil, nil))
	}
	rdb := redis.NewClient(&redis.Options{}) // it does not connect
	defer func() { _ = rdb.Close() }()       // it has no connection
	conn, err := connection.New(rdb, on)
	if err == nil {
		_, err = wakebell.New(nil, conn, cfg)
	}
	if err == nil {
		return nil
	}
	// The place in the file says which handler it is.
	text := strings.ReplaceAll(err.Error(), wakebell.ErrInvalid.Error()+": ", "")
	if rest, of := strings.CutPrefix(text, "Handlers[0] (topic "); of {
		_, text, _ = strings.Cut(rest, "): ")
	}
	return errors.New(strings.ReplaceAll(text, "\n", "; "))
}
