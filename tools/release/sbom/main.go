// Command sbom writes the software bill of materials of a Go program in the format of
// CycloneDX 1.6: the modules that it was built from, as the program records them. The
// same program gives the same bytes.
//
//	sbom PROGRAM OUTPUT
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

type bill struct {
	Format     string      `json:"bomFormat"`
	Version    string      `json:"specVersion"`
	Number     int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%d arguments, want a program and an output file", len(args))
	}
	info, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return err
	}
	sum, err := sumOf(args[0])
	if err != nil {
		return err
	}
	main := componentOf("application", &info.Main)
	main.Hashes = []hash{{"SHA-256", sum}}
	b := bill{Format: "CycloneDX", Version: "1.6", Number: 1, Metadata: metadata{main}}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		b.Components = append(b.Components, componentOf("library", module))
	}
	b.Components = append(b.Components, component{
		Type: "library", Name: "std", Version: info.GoVersion, PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
	})
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Clean(args[1]), append(text, '\n'), 0o600)
}

func componentOf(kind string, module *debug.Module) component {
	c := component{Type: kind, Name: module.Path, Version: module.Version, PURL: "pkg:golang/" + module.Path + "@" + module.Version}
	// go.sum has SHA-256 of a listing of the module's files, in base64.
	if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:")); err == nil && len(raw) == sha256.Size {
		c.Hashes = []hash{{"SHA-256", hex.EncodeToString(raw)}}
	}
	return c
}

func sumOf(name string) (string, error) {
	file, err := os.Open(filepath.Clean(name))
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
