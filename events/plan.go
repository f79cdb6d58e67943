package events

// Plan is the plan that a tenant is on.
type Plan string

// The plans.
const (
	FreePlan       Plan = "free"
	SandboxPlan    Plan = "sandbox"
	StandardPlan   Plan = "standard"
	PremiumPlan    Plan = "premium"
	EnhancedPlan   Plan = "enhanced"
	EnterprisePlan Plan = "enterprise"
)

// PlanTerms holds the terms of a plan.
type PlanTerms struct {
	Plan              Plan
	RequestsPerMinute int  // unless the operator sets a different limit
	TenantFlagBytes   int  // of all flags together
	InvitationsPerDay int  // and members that are added by address
	Checkout          bool // a checkout may ask for it
	LegacyCheckout    bool // a checkout of the old interface may
}

// Plans lists the plans with their terms, each with the features of the ones before. It is the only definition of a
// plan.
var Plans = []PlanTerms{
	{Plan: FreePlan, RequestsPerMinute: 1_200, TenantFlagBytes: 16 << 20, InvitationsPerDay: 25, LegacyCheckout: true},
	{Plan: SandboxPlan, RequestsPerMinute: 1_200, TenantFlagBytes: 16 << 20, InvitationsPerDay: 25, Checkout: true},
	{
		Plan:              StandardPlan,
		RequestsPerMinute: 6_000,
		TenantFlagBytes:   64 << 20,
		InvitationsPerDay: 250,
		Checkout:          true,
		LegacyCheckout:    true,
	},
	{
		Plan:              PremiumPlan,
		RequestsPerMinute: 60_000,
		TenantFlagBytes:   256 << 20,
		InvitationsPerDay: 2_500,
		LegacyCheckout:    true,
	},
	{Plan: EnhancedPlan, RequestsPerMinute: 60_000, TenantFlagBytes: 256 << 20, InvitationsPerDay: 2_500, Checkout: true},
	{Plan: EnterprisePlan, RequestsPerMinute: 600_000, TenantFlagBytes: 1 << 30, InvitationsPerDay: 2_500, Checkout: true},
}

// Feature is a part of the service that not every plan includes.
type Feature string

// The features.
const (
	Analytics    Feature = "analytics"
	Experiments  Feature = "experiments"
	Multivariate Feature = "multivariate"
)

// FeaturePlans returns the lowest plan with each feature, unless the operator sets others.
func FeaturePlans() map[Feature]Plan {
	return map[Feature]Plan{Analytics: StandardPlan, Experiments: EnhancedPlan, Multivariate: EnhancedPlan}
}

// PlanNames returns the names of the plans whose terms are chosen, in order.
func PlanNames(chosen func(PlanTerms) bool) (names []string) {
	for _, terms := range Plans {
		if chosen(terms) {
			names = append(names, string(terms.Plan))
		}
	}
	return names
}

// AnyPlan chooses all plans.
func AnyPlan(PlanTerms) bool { return true }

func (p Plan) rank() int {
	for i := range Plans {
		if Plans[i].Plan == p {
			return i
		}
	}
	return -1
}

// Known reports whether the plan exists.
func (p Plan) Known() bool { return p.rank() >= 0 }

// Unpaid reports whether a plan is free.
func (p Plan) Unpaid() bool { return p == FreePlan || p == SandboxPlan }

// Includes reports whether a plan is the other one or higher. No plan includes an unknown one.
func (p Plan) Includes(other Plan) bool { return other.Known() && p.rank() >= other.rank() }

// Terms returns the terms of a plan. An unknown plan has the free plan's.
func (p Plan) Terms() PlanTerms { return Plans[max(p.rank(), 0)] }
