package main

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// What README calls a file or folder of the code is there. Names such as queries/x.go stand for any.
func TestReadmeNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	root := os.DirFS("../..")
	readme, err := fs.ReadFile(root, "README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{} // each path, and each end of it
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (name == "bin" || name == "data" || entry.Name() == "node_modules" || len(entry.Name()) > 1 && strings.HasPrefix(entry.Name(), ".")) {
			return fs.SkipDir
		}
		if entry.IsDir() {
			name += "/"
		}
		for end := name; end != ""; {
			found[end] = true
			_, end, _ = strings.Cut(end, "/")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9_/]+(?:\\.go|\\.md|/))`").FindAllStringSubmatch(string(readme), -1)
	if len(named) < 50 {
		t.Errorf("only %d names were found in README", len(named))
	}
	for _, match := range named {
		base := path.Base(match[1])
		if !found[match[1]] && base != "x.go" && base != "x_test.go" {
			t.Errorf("README names %s, which is not there", match[1])
		}
	}
}
