package http_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"flagledger/cmd/flagledger/nodetest"
)

// BenchmarkSegments adds and removes a member of a segment with nearly 100,000 members, of one that 1,000 flags use, and of a
// small one, in turn with switches of a flag. It also reports how long the members take by CSV.
func BenchmarkSegments(b *testing.B) {
	const csvParts, csvRows, users = 10, 9_999, 1_000
	me := nodetest.New(b).SignUp("me@example.com")
	for _, key := range []string{"small", "large", "used"} {
		createSegment(me, key, "")
	}
	began := time.Now()
	for part := range csvParts {
		var rows strings.Builder
		for i := range csvRows {
			fmt.Fprintf(&rows, "user-%d\n", part*csvRows+i)
		}
		me.Call("POST", segmentPath("large", "/members?list=included"), rows.String(), "Content-Type", "text/csv").Want(200)
	}
	csv := time.Since(began)
	var all errgroup.Group
	all.SetLimit(8)
	for _, key := range appendFlags(me, users) {
		all.Go(func() error {
			rules := `{"rules":[{"conditions":[{"op":"in_segment","values":["used"]}],"serve":{"value":true}}]}`
			if r := me.Attempt("PUT", nodetest.FlagPath(key, "/rules"), rules); r.Status != 200 {
				return fmt.Errorf("%s: %v", key, r)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		b.Fatal(err)
	}
	flag, took := newToggler(b, me, "k"), map[string]*samples{"small": {}, "large": {}, "used": {}}
	ops, n := []string{"add", "remove"}, 0
	for b.Loop() {
		flag.toggle()
		for key, into := range took {
			body := fmt.Sprintf(`{"list":"included",%q:["ada"]}`, ops[n%2])
			r := me.Attempt("POST", segmentPath(key, "/members"), body)
			if r.Status != 200 {
				b.Fatal(key, r)
			}
			into.Add(r.Took)
		}
		n++
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(csv.Seconds(), "csv-s")
	flag.took.Report(b, 50)
	b.ReportMetric(took["small"].over(&flag.took, 50), "small-times-flag")
	b.ReportMetric(took["used"].over(&flag.took, 50), "used-times-flag")
	b.ReportMetric(took["large"].over(took["small"], 50), "large-times-small")
}
