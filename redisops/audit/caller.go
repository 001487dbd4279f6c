package audit

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// caller is who an operation is of.
type caller struct {
	name string
	via  wakebelltype.AuditVia
	from string
}

type (
	nameKey struct{}
	skipKey struct{}
)

// WithCaller returns ctx with the name that entries of its operations have.
func WithCaller(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, nameKey{}, name)
}

// Skip returns ctx whose operations are not recorded, because they are part of
// another one or no operator's.
func Skip(ctx context.Context) context.Context { return context.WithValue(ctx, skipKey{}, true) }

func skipped(ctx context.Context) bool { return ctx.Value(skipKey{}) != nil }

// caller returns the caller of ctx. What a node knows of a peer precedes the name
// that the process gives.
func (l *Log) caller(ctx context.Context) caller {
	if origin, ok := messages.OriginOf(ctx); ok {
		via := wakebelltype.AuditVia(origin.Credential)
		if via == "" {
			via = wakebelltype.AuditViaNetwork
		}
		return caller{messages.Principal(ctx), via, origin.Host}
	}
	name, ok := ctx.Value(nameKey{}).(string)
	if !ok || name == "" {
		name = l.cfg.Caller
	}
	return caller{name, wakebelltype.AuditViaProcess, l.origin}
}

func userAtHost() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return name + "@" + host()
}

// thisProcess returns program/process@host.
func thisProcess() string {
	return fmt.Sprintf("%s/%d@%s", filepath.Base(os.Args[0]), os.Getpid(), host())
}

func host() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "unknown"
	}
	return name
}
