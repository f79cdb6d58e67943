package events

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestThePlanInForce(t *testing.T) {
	const day = 24 * time.Hour
	end := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	with := func(status SubscriptionStatus, change ...func(*Subscription)) Subscription {
		s := Subscription{ID: "sub_1", Plan: EnhancedPlan, Status: status, PeriodStart: end.AddDate(0, -1, 0), PeriodEnd: end}
		for _, f := range change {
			f(&s)
		}
		return s
	}
	cancelled := func(s *Subscription) { s.CancelAtPeriodEnd = true }
	since := func(at time.Time) func(*Subscription) { return func(s *Subscription) { s.PastDueSince = at } }
	const never = -1000 * day
	for name, c := range map[string]struct {
		s    Subscription
		ends time.Duration // after the end of the period; never if it has not started, 0 if it ends with the period
	}{
		"active, and to be cancelled":             {with(Active, cancelled), 0},
		"active, without news of its renewal":     {with(Active), 7 * day},
		"on trial, and to be cancelled":           {with(Trialing, cancelled), 0},
		"on trial, without news of its renewal":   {with(Trialing), 7 * day},
		"past due since the renewal":              {with(PastDue, since(end)), 7 * day},
		"past due for a change within a period":   {with(PastDue, since(end.Add(-10*day))), -3 * day},
		"past due, and to be cancelled":           {with(PastDue, cancelled, since(end.Add(-day))), 0},
		"past due, and to be cancelled far later": {with(PastDue, cancelled, since(end.Add(-10*day))), -3 * day},
		"incomplete":                   {with(Incomplete), never},
		"incomplete and expired":       {with(IncompleteExpired), never},
		"unpaid":                       {with(Unpaid), never},
		"cancelled":                    {with(Canceled), never},
		"paused":                       {with(Paused), never},
		"of a state that is not known": {with("frozen"), never},
	} {
		t.Run(name, func(t *testing.T) {
			if c.ends != never {
				for _, at := range []time.Time{c.s.PeriodStart, end.Add(c.ends - time.Nanosecond)} {
					if got := c.s.PlanAt(at, false); got != EnhancedPlan {
						t.Errorf("at %v the plan is %s, want %s", at, got, EnhancedPlan)
					}
				}
			}
			for _, at := range []time.Time{end.Add(c.ends), end.Add(max(c.ends, 0)).AddDate(10, 0, 0)} {
				if plain, sandbox := c.s.PlanAt(at, false), c.s.PlanAt(at, true); plain != FreePlan || sandbox != SandboxPlan {
					t.Errorf("at %v the plan is %s, of a sandbox %s", at, plain, sandbox)
				}
			}
		})
	}
	t.Run("a plan that nobody pays for does not end", func(t *testing.T) {
		s := Subscription{Plan: EnterprisePlan, Status: NoSubscription}
		if got := s.PlanAt(end.AddDate(100, 0, 0), false); got != EnterprisePlan {
			t.Errorf("it became %s", got)
		}
	})
	t.Run("a subscription without a period does not end by itself", func(t *testing.T) {
		s := Subscription{ID: "sub_1", Plan: StandardPlan, Status: Active}
		if got := s.PlanAt(end.AddDate(100, 0, 0), false); got != StandardPlan {
			t.Errorf("it became %s", got)
		}
	})
	for sandbox, want := range map[bool]Plan{false: FreePlan, true: SandboxPlan} {
		if got := (TenantCreated{Sandbox: sandbox, Plan: want}).FirstSubscription().PlanAt(end, sandbox); got != want {
			t.Errorf("a new tenant has the plan %s, want %s", got, want)
		}
	}
}

// The plan of any subscription ends once, as time passes, and at most a week after the paid period.
func TestAPlanEndsOnce(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	moment := rapid.Map(rapid.Int64Range(0, 100*24*3600),
		func(n int64) time.Time { return base.Add(time.Duration(n) * time.Second) })
	rapid.Check(t, func(t *rapid.T) {
		s := Subscription{
			ID:                "sub_1",
			Plan:              StandardPlan,
			CancelAtPeriodEnd: rapid.Bool().Draw(t, "cancelled"),
			PeriodEnd:         moment.Draw(t, "period end"),
			Status: rapid.SampledFrom([]SubscriptionStatus{Incomplete, IncompleteExpired, Trialing, Active, PastDue, Unpaid, Canceled, Paused}).
				Draw(t, "status"),
		}
		if s.Status == PastDue {
			s.PastDueSince = moment.Draw(t, "past due since")
		}
		sandbox := rapid.Bool().Draw(t, "sandbox")
		a, b := moment.Draw(t, "a time"), moment.Draw(t, "another")
		if b.Before(a) {
			a, b = b, a
		}
		without := map[bool]Plan{false: FreePlan, true: SandboxPlan}[sandbox]
		before, after := s.PlanAt(a, sandbox), s.PlanAt(b, sandbox)
		for _, plan := range []Plan{before, after} {
			if plan != StandardPlan && plan != without {
				t.Fatalf("the plan is %s", plan)
			}
		}
		if before == without && after != without {
			t.Fatalf("at %v it had ended, and at %v it goes on", a, b)
		}
		last := s.PeriodEnd.Add(PastDueGrace)
		switch {
		case s.CancelAtPeriodEnd:
			last = s.PeriodEnd
		case s.Status == PastDue:
			last = s.PastDueSince.Add(PastDueGrace)
		}
		if !b.Before(last) && after != without {
			t.Fatalf("it goes on after %v", last)
		}
		if !s.Status.Manageable() && before != without {
			t.Fatalf("it gives a plan in the state %s", s.Status)
		}
	})
}

func TestThePlansAreInOrder(t *testing.T) {
	for i, terms := range Plans {
		if terms.Plan.Terms() != terms {
			t.Errorf("%s is listed twice", terms.Plan)
		}
		for j, other := range Plans {
			if terms.Plan.Includes(other.Plan) != (i >= j) {
				t.Errorf("%s includes %s: %v", terms.Plan, other.Plan, i < j)
			}
			if i >= j &&
				(terms.RequestsPerMinute < other.RequestsPerMinute || terms.TenantFlagBytes < other.TenantFlagBytes || terms.InvitationsPerDay < other.InvitationsPerDay) {
				t.Errorf("%s gives less than %s", terms.Plan, other.Plan)
			}
		}
	}
	if unknown := Plan("gold"); unknown.Known() || unknown.Includes(FreePlan) || unknown.Includes(unknown) ||
		unknown.Terms() != FreePlan.Terms() {
		t.Error("a plan that is not known gives more than the free one")
	}
	for feature, plan := range FeaturePlans() {
		if !plan.Known() {
			t.Errorf("%s needs the plan %q", feature, plan)
		}
	}
}
