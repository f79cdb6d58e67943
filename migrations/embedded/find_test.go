package embedded

import (
	"os"
	"path/filepath"
	"testing"
)

// fakePostgres creates a folder with programs that only print a version.
func fakePostgres(t *testing.T, folder, version string) {
	t.Helper()
	must(t, os.MkdirAll(folder, 0o755))
	for _, name := range []string{"initdb", "postgres"} {
		script := "#!/bin/sh\necho '" + name + " (PostgreSQL) " + version + " (Some 1.2)'\n"
		writeProgram(t, filepath.Join(folder, name), script)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	at := func(version string) string { return filepath.Join(top, version, "bin") }
	for _, v := range []string{"9.6", "15", "16", "17"} {
		fakePostgres(t, at(v), v+".3")
	}
	half := filepath.Join(top, "half")
	fakePostgres(t, half, "16.1")
	must(t, os.Remove(filepath.Join(half, "initdb")))
	broken := filepath.Join(top, "broken")
	fakePostgres(t, broken, "16.1")
	writeProgram(t, filepath.Join(broken, "postgres"), "#!/bin/sh\necho 'cannot open shared object file' >&2\nexit 127\n")
	installed := []string{filepath.Join(top, "*", "bin")}

	for _, c := range []struct {
		name string
		s    sources
		want int
		dir  string
		refs []string // words of the error
	}{
		{"PATH first", sources{path: []string{half, broken, "relative", at("15")}, installed: installed}, 0, at("15"), nil},
		{"highest installed", sources{path: []string{half}, installed: installed}, 0, at("17"), nil},
		{"too old on PATH", sources{path: []string{at("9.6")}, installed: installed}, 0, at("17"), nil},
		{"that of the cluster", sources{path: []string{at("15")}, installed: installed}, 16, at("16"), nil},
		{"none for the cluster", sources{path: []string{at("15")}}, 16, "", []string{"16", "15 (" + at("15") + ")"}},
		{"none at all for the cluster", sources{}, 16, "", []string{"16", "no Postgres is installed"}},
		{"none at all", sources{}, 0, "", []string{"14 or newer", "no package for", "install"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.s.find(t.Context(), c.want, t.TempDir(), testLog(t))
			if c.refs != nil {
				mentions(t, err, c.refs...)
				return
			}
			must(t, err)
			if got.dir != c.dir {
				t.Errorf("found %s, want %s", got.dir, c.dir)
			}
		})
	}
}
