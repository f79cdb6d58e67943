package main

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"flagledger/events"
)

// repository returns the files of the repository.
func repository() fs.FS { return os.DirFS("../..") }

// documents returns the paths of README.md and its neighbours, of the dashboard's README.md, and of all pages in docs/.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := fs.Glob(repository(), "*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, "http/dashboard/README.md")
	err = fs.WalkDir(repository(), "docs", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path.Ext(name) == ".md" {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// readDocument returns the text of a page.
func readDocument(t *testing.T, page string) string {
	t.Helper()
	text, err := fs.ReadFile(repository(), page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Documents name only files and folders that exist. Names such as queries/x.go stand for any file.
func TestDocumentsNameExistingFiles(t *testing.T) {
	t.Parallel()
	found := map[string]bool{} // each path, and each end of it
	err := fs.WalkDir(repository(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := len(entry.Name()) > 1 && strings.HasPrefix(entry.Name(), ".")
		if entry.IsDir() && (name == "bin" || name == "data" || entry.Name() == "node_modules" || hidden) {
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
	names := regexp.MustCompile("`([a-z0-9_][a-z0-9_/]*(?:\\.go|\\.md|/))`")
	count := 0
	for _, page := range documents(t) {
		for _, match := range names.FindAllStringSubmatch(readDocument(t, page), -1) {
			count++
			base := path.Base(match[1])
			if !found[match[1]] && base != "x.go" && base != "x_test.go" {
				t.Errorf("%s names %s, which does not exist", page, match[1])
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d names were found in the documents", count)
	}
}

// Lines of documents fit into a terminal, and README into two minutes of reading.
func TestDocumentsAreShort(t *testing.T) {
	t.Parallel()
	for _, page := range documents(t) {
		text := readDocument(t, page)
		number := 0
		for line := range strings.Lines(text) {
			number++
			if length := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); length > 160 {
				t.Errorf("%s:%d has %d characters; 160 are allowed", page, number, length)
			}
		}
		if page == "README.md" && (number > 150 || len(text) > 12<<10) {
			t.Errorf("README.md has %d lines and %d bytes; 150 lines and 12 KB are allowed", number, len(text))
		}
	}
}

// README leads to every page.
func TestReadmeLinksToEveryPage(t *testing.T) {
	t.Parallel()
	readme := readDocument(t, "README.md")
	for _, page := range documents(t) {
		if page != "README.md" && !strings.Contains(readme, "]("+page+")") {
			t.Errorf("README.md does not link to %s", page)
		}
	}
}

// The page about the audit trail lists the streams that its proof covers.
func TestAuditPageListsStreamsOfTenants(t *testing.T) {
	page := readDocument(t, "docs/audit.md")
	for _, prefix := range events.TenantFactPrefixes() {
		if stream := "\n- `" + strings.TrimSuffix(prefix, ".") + "-"; !strings.Contains(page, stream) {
			t.Errorf("docs/audit.md does not list the streams whose facts are %s…", prefix)
		}
	}
}

// Links within the repository lead to files and headings that exist.
func TestDocumentsLinksResolve(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(withoutCode(readDocument(t, page)), -1) {
			target, heading, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			target = path.Join(path.Dir(page), target)
			if strings.HasPrefix(match[1], "#") {
				target = page
			}
			if _, err := fs.Stat(repository(), target); err != nil {
				t.Errorf("%s links to %s: %v", page, match[1], err)
			} else if heading != "" && !slices.Contains(headings(readDocument(t, target)), heading) {
				t.Errorf("%s links to %s, and %s has no such heading", page, match[1], target)
			}
		}
	}
}

// withoutCode returns the text of a page without its blocks of code.
func withoutCode(text string) string {
	var b strings.Builder
	code := false
	for line := range strings.Lines(text) {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if !code && !fence {
			b.WriteString(line)
		}
		code = code != fence
	}
	return b.String()
}

// headings returns the anchors that GitHub makes of a page's headings.
func headings(text string) (anchors []string) {
	for line := range strings.Lines(withoutCode(text)) {
		level, title, found := strings.Cut(strings.TrimSpace(line), " ")
		if !found || strings.Trim(level, "#") != "" || level == "" {
			continue
		}
		anchors = append(anchors, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, title))
	}
	return anchors
}
