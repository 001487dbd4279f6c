// Command image writes a container image for several platforms as an OCI layout in a
// tar file, which `skopeo copy oci-archive:FILE docker://…` or `podman load` read. It
// needs no container engine and no network: the image starts from nothing and has the
// program, the certificates of public authorities, and a user without rights. The same
// programs give the same bytes.
//
//	image OUTPUT VERSION COMMIT DATE OS/ARCH=PROGRAM...
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the number that distroless images have for "nonroot".
const user = "65532"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 5 {
		return fmt.Errorf("%d arguments, want an output, a version, a commit, a date and programs", len(args))
	}
	output, version, commit := args[0], args[1], args[2]
	date, err := time.Parse(time.RFC3339, args[3])
	if err != nil {
		return fmt.Errorf("date: %w", err)
	}
	index := v1.ImageIndex(empty.Index)
	for _, arg := range args[4:] {
		platform, program, _ := strings.Cut(arg, "=")
		on, err := v1.ParsePlatform(platform)
		if err != nil {
			return fmt.Errorf("platform %q: %w", platform, err)
		}
		image, err := build(program, on, version, commit, date)
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: on}})
	}
	return write(output, index, date)
}

// build makes the image of one platform.
func build(program string, on *v1.Platform, version, commit string, date time.Time) (v1.Image, error) {
	binary, err := os.ReadFile(filepath.Clean(program))
	if err != nil {
		return nil, err
	}
	var certificates bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file cannot express a constraint
			_ = pem.Encode(&certificates, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	layer, err := layerOf(date, []file{
		{"etc/passwd", 0o644, []byte("nonroot:x:" + user + ":" + user + "::/:/none\n")},
		{"etc/group", 0o644, []byte("nonroot:x:" + user + ":\n")},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates.Bytes()},
		{"usr/bin/wakebell", 0o755, binary},
	})
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, &v1.ConfigFile{
		Architecture: on.Architecture, OS: on.OS, Created: v1.Time{Time: date},
		RootFS:  rootOf(image),
		History: []v1.History{{Created: v1.Time{Time: date}, CreatedBy: "tools/release/image"}},
		Config: v1.Config{
			User: user, Entrypoint: []string{"/usr/bin/wakebell"}, Cmd: []string{"node"},
			Env:         []string{"PATH=/usr/bin", "WAKEBELL_NODE_HEALTH=127.0.0.1:8080"},
			Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/usr/bin/wakebell", "health"}, Interval: 10 * time.Second, Timeout: 6 * time.Second, StartPeriod: 5 * time.Second, Retries: 3},
			StopSignal:  "SIGTERM",
			Labels: map[string]string{
				"org.opencontainers.image.title":    "wakebell",
				"org.opencontainers.image.source":   "https://github.com/wakebell/wakebell",
				"org.opencontainers.image.licenses": "Apache-2.0",
				"org.opencontainers.image.version":  version,
				"org.opencontainers.image.revision": commit,
				"org.opencontainers.image.created":  date.UTC().Format(time.RFC3339),
			},
		},
	})
}

func rootOf(image v1.Image) v1.RootFS {
	config, err := image.ConfigFile()
	if err != nil {
		return v1.RootFS{} // an image in memory has one
	}
	return config.RootFS
}

type file struct {
	name    string
	mode    fs.FileMode
	content []byte
}

func layerOf(date time.Time, files []file) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, dir := range []string{"etc/", "etc/ssl/", "etc/ssl/certs/", "usr/", "usr/bin/"} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: date}); err != nil {
			return nil, err
		}
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777, ModTime: date}); err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: date}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	})
}

// write writes the index as an OCI layout in a tar file.
func write(output string, index v1.ImageIndex, date time.Time) error {
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	out, err := os.Create(filepath.Clean(output))
	if err != nil {
		return err
	}
	w := tar.NewWriter(out)
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(content)), ModTime: date}); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err == nil {
		err = w.Close()
	}
	if closing := out.Close(); err == nil {
		err = closing
	}
	return err
}
