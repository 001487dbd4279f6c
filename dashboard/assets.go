package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
)

//go:embed assets/*
var assetFiles embed.FS

// assets are the style sheet, the script and the icon. Their addresses contain a
// version, so browsers may keep them.
type assets struct {
	version string
	files   map[string][]byte
}

var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

func loadAssets() (assets, error) {
	a := assets{files: map[string][]byte{}}
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return a, fmt.Errorf("read assets: %w", err)
	}
	sum := sha256.New()
	for _, e := range entries {
		content, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			return a, fmt.Errorf("read assets: %w", err)
		}
		a.files[e.Name()] = content
		_, _ = sum.Write(content) // a hash returns no error
	}
	a.version = hex.EncodeToString(sum.Sum(nil)[:8])
	return a, nil
}

func (a assets) serve(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	content, ok := a.files[name]
	if !ok {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", mediaTypes[path.Ext(name)])
	if r.URL.Query().Get("v") == a.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(content) // an error means that the browser has gone
}
