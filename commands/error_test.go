package commands

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMergeFieldErrors(t *testing.T) {
	shape := map[string]string{"rules[0]": "expected object", "x": "unexpected property"}
	ofRules := &Error{Kind: Invalid, Detail: "validation failed", Fields: map[string]string{
		"rules[0].serve":  "is required",
		"rules[0]":        "is empty",
		"rules[01].serve": "is required",
		"rulesets":        "is required",
		"x.y":             "is bad",
		"y":               "is bad",
		"y.z":             "is bad",
	}}
	for name, c := range map[string]struct {
		wrong map[string]string
		err   error
		want  map[string]string // nil: err unchanged
	}{
		"nothing":                                  {nil, nil, nil},
		"no shape":                                 {nil, ofRules, nil},
		"shape alone":                              {shape, nil, shape},
		"what exists already is not looked at":     {shape, Refuse(Conflict, "exists"), shape},
		"a full day does not hide what is wrong":   {shape, &Error{Kind: TooMany, PerDay: 200}, shape},
		"who waited in vain is told so":            {shape, &Error{Kind: TooMany, AtOnce: 2}, nil},
		"what is not there is not to be judged":    {shape, Refuse(NotFound, "none"), nil},
		"a fault stays one":                        {shape, errors.New("fault"), nil},
		"parts of what is wrong are not wrong too": {shape, ofRules, map[string]string{"rules[0]": "expected object", "x": "unexpected property", "rules[01].serve": "is required", "rulesets": "is required", "y": "is bad", "y.z": "is bad"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := MergeFieldErrors(c.wrong, c.err)
			if c.want == nil {
				if !errors.Is(got, c.err) {
					t.Errorf("got %v, want %v", got, c.err)
				}
				return
			}
			refusal, _ := errors.AsType[*Error](got)
			if refusal == nil || refusal.Kind != Invalid {
				t.Fatalf("got %v", got)
			}
			if diff := cmp.Diff(c.want, refusal.Fields); diff != "" {
				t.Errorf("fields differ (-want +got):\n%s", diff)
			}
		})
	}
}
