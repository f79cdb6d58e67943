package evaluation

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/evaluation/evaluationtest"
)

// A compiled state serves what the flag served, and its explanation ends with it.
func TestAStateServesWhatTheFlagServed(t *testing.T) {
	seen := cases{}
	wanted := []string{
		"status", "environment", "rule", "fallthrough", "weights", "default", "split: true", "split: false", "unit missing",
		"not compiled",
	}
	evaluationtest.CheckUntil(t, func() bool { return seen.have(wanted) }, func(t *rapid.T) {
		follower := newFollower()
		evaluationtest.DrawFlag(t, func(e events.Recorded, s *state.Flag) {
			_ = follower.take(e)
			live := follower.flag
			if live == nil {
				return
			}
			for _, e := range theEnvironments {
				key, sent := evaluationtest.Sample(t, evaluationtest.Keys), evaluationtest.DrawAttributes(t, 2)
				c := &Context{TargetingKey: key, Attributes: attributes(sent)}
				want, wantErr := live.Evaluate(e.ID, c)
				if _, err := CompileIn(*s, e.ID); err != nil || live.version != s.Version {
					seen["not compiled"]++ // the flag serves its last good version
					continue
				}
				got, x, gotErr := Explain(*s, e.ID, c)
				if shown(got) != shown(want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
					t.Fatalf("in %s, %q with %s is served\n%+v, %v by the state, and by the flag\n%+v, %v", e.ID, key, sent, got,
						gotErr, want, wantErr)
				}
				if wantErr != nil {
					seen["unit missing"]++
					continue
				}
				checkExplained(t, got, x)
				seen[string(x.Steps[len(x.Steps)-1].Kind)]++
				seen[fmt.Sprint("split: ", x.Split != nil)]++
			}
		})
	})
	if !seen.have(wanted) {
		t.Errorf("the flags that were drawn have the cases %v, want %q", seen, wanted)
	}
}

func checkExplained(t failer, r Result, x Explanation) {
	last := x.Steps[len(x.Steps)-1]
	reasons := map[StepKind]Reason{
		EnvironmentStep: Off,
		RuleStep:        RuleMatch,
		FallthroughStep: Fallthrough,
		WeightsStep:     Fallthrough,
		DefaultStep:     Fallthrough,
	}
	if last.Kind == StatusStep {
		reasons[StatusStep] = map[string]Reason{"archived": Archived, "inactive": Off}[last.Outcome]
	}
	if reasons[last.Kind] != r.Reason || last.RuleID != r.RuleID || (x.Split != nil) != r.Split {
		t.Fatalf("%+v is explained by %+v", r, x)
	}
	for i, s := range x.Steps {
		for j, c := range s.Conditions {
			if c.Matched != (j+1 < len(s.Conditions) || s.Outcome == "matched") {
				t.Fatalf("step %d is explained by %+v", i, s)
			}
		}
	}
	if s := x.Split; s != nil &&
		(s.VariationID != r.VariationID || s.Bucket != bucketOf(s.Salt, s.Unit, s.Total) || s.Bucket != uint64(s.Hash)*s.Total>>32) {
		t.Fatalf("%+v is explained by the split %+v", r, s)
	}
}
