package http_test

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"flagledger/cmd/flagledger/nodetest"
)

var timePattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.(\d{3}|\d{6})Z$`)

// checkTimes checks that all timestamps are UTC with milliseconds or microseconds and Z.
func checkTimes(t *testing.T, object map[string]any) {
	t.Helper()
	found := false
	for name, value := range object {
		if value == nil && slices.Contains([]string{"lastEvaluatedAt", "lastPrefetchedAt", "lastRequiredAt"}, name) {
			continue // it was not used yet
		}
		if name == "timestamp" || strings.HasSuffix(name, "At") {
			found = true
			if text, ok := value.(string); !ok || !timePattern.MatchString(text) {
				t.Errorf("%s is %v", name, value)
			}
		}
	}
	if !found {
		t.Errorf("there is no timestamp in %v", object)
	}
}

var nextLink = regexp.MustCompile(`^<([^>]+)>; rel="next"$`)

// nextPage returns the link to the next page, or "".
func nextPage(a *nodetest.Answer) string {
	for _, link := range a.Header.Values("Link") {
		if !strings.HasSuffix(link, `rel="successor-version"`) { // legacy paths have one
			return link
		}
	}
	return ""
}

// checkPages reads a whole list in pages of two along its links, and past its end. want is a member of each entry, in
// order.
func checkPages(t *testing.T, c *nodetest.Client, path, member string, want []any) {
	t.Helper()
	total := strconv.Itoa(len(want))
	whole := c.Call("GET", path, nil).Want(200)
	if diff := cmp.Diff(want, nodetest.Column(whole.List(), member)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
	if whole.Header.Get("X-Total-Count") != total || nextPage(whole) != "" {
		t.Errorf("%s: the whole list has the headers %v", path, whole.Header)
	}
	and := "?"
	if strings.Contains(path, "?") {
		and = "&"
	}
	var got []any
	for next := path + and + "limit=2"; next != ""; {
		page := c.Call("GET", next, nil).Want(200)
		got = append(got, nodetest.Column(page.List(), member)...)
		if page.Header.Get("X-Total-Count") != total {
			t.Errorf("%s: X-Total-Count is %q", next, page.Header.Get("X-Total-Count"))
		}
		before := next
		next = ""
		if link := nextPage(page); link != "" {
			target, err := url.Parse(c.Service.URL + before)
			if err != nil {
				t.Fatal(err)
			}
			match := nextLink.FindStringSubmatch(link)
			if match == nil || len(got) >= len(want) {
				t.Fatalf("%s: after %d of %d the link is %q", before, len(got), len(want), link)
			}
			reference, err := target.Parse(match[1])
			if err != nil {
				t.Fatal(err)
			}
			next = reference.RequestURI()
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the pages of %s (-want +got):\n%s", path, diff)
	}
	past := c.Call("GET", path+and+"limit=10&offset="+total, nil).Want(200)
	if string(past.Body) != "[]" || nextPage(past) != "" || past.Header.Get("X-Total-Count") != total {
		t.Errorf("%s: past the end: %s %v", path, past.Body, past.Header)
	}
	rest := c.Call("GET", path+and+"offset=1", nil).Want(200)
	if diff := cmp.Diff(want[1:], nodetest.Column(rest.List(), member)); diff != "" {
		t.Errorf("%s without the first (-want +got):\n%s", path, diff)
	}
	for _, bad := range [][2]string{
		{"limit=0", "limit"}, {"limit=1001", "limit"}, {"limit=-1", "limit"}, {"limit=two", "limit"}, {"limit=1.5", "limit"}, {"offset=-1", "offset"},
		{"offset=x", "offset"}, {"limit=99999999999999999999", "limit"}, {"page=2", "page"}, {"Limit=2", "Limit"},
	} {
		c.Call("GET", path+and+bad[0], nil).Refused(422, bad[1])
	}
	c.Call("GET", path+and+"limit=0&offset=-1", nil).Refused(422, "limit", "offset")
	c.Call("GET", path+and+"limit=1000&offset=9223372036854775807", nil).Want(200)
}
