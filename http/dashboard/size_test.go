package dashboard_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"flagledger/commands/tooltest"
	"flagledger/http/dashboard"
)

// The first visit to the list of flags, and all pages together, have a limit of transferred bytes.
func TestTheDashboardIsSmall(t *testing.T) {
	t.Parallel()
	if !dashboard.Built() {
		tooltest.Require(t, "dashboard", errors.New("the tests were built without it: make dashboard"))
	}
	files := dashboard.Files()
	first := map[string]bool{"index.html": true}
	for _, source := range []string{"index.html", "src/shell/Shell.svelte", "src/shell/Tour.svelte", "src/pages/flags/FlagsPage.svelte"} {
		addLoaded(t, manifest(t, files), source, first)
	}
	every := map[string]bool{}
	err := fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, err error) error {
		if original, ok := strings.CutSuffix(name, ".br"); ok || name == "index.html" {
			every[original] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		files map[string]bool
		most  int64
	}{
		"the first page": {first, 130_000},
		"every page":     {every, 320_000},
	} {
		var bytes int64
		for name := range c.files {
			bytes += compressedSize(t, files, name)
		}
		t.Logf("%s: %d bytes in %d files", what, bytes, len(c.files))
		if bytes > c.most {
			t.Errorf("%s has %d bytes, want at most %d", what, bytes, c.most)
		}
	}
}

// chunk is an output in Vite's manifest.
type chunk struct {
	File         string
	Imports, CSS []string
}

func manifest(t *testing.T, files fs.FS) map[string]chunk {
	t.Helper()
	text, err := fs.ReadFile(files, ".vite/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var chunks map[string]chunk
	if err := json.Unmarshal(text, &chunks); err != nil {
		t.Fatal(err)
	}
	return chunks
}

// addLoaded adds the files that a browser loads for a source at once, without those loaded on demand.
func addLoaded(t *testing.T, chunks map[string]chunk, source string, loaded map[string]bool) {
	t.Helper()
	c, ok := chunks[source]
	if !ok {
		t.Fatalf("the manifest has no %s", source)
	}
	if loaded[c.File] {
		return
	}
	loaded[c.File] = true
	for _, css := range c.CSS {
		loaded[css] = true
	}
	for _, imported := range c.Imports {
		addLoaded(t, chunks, imported, loaded)
	}
}

func compressedSize(t *testing.T, files fs.FS, name string) int64 {
	t.Helper()
	if name != "index.html" { // the server completes it, so it is not compressed
		name += ".br"
	}
	info, err := fs.Stat(files, name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
