package billing

import (
	"fmt"
	"regexp"

	"flagledger/events"
)

// PlanPrices holds the prices of plans at the payment provider.
type PlanPrices struct {
	sold  map[events.Plan]string // the price at which a plan is sold
	plans map[string]events.Plan // by price
}

var pricePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,255}$`)

// ParsePlanPrices parses prices such as standard=price_1,enhanced=price_2. A plan is sold at its first price;
// subscriptions at its other prices count for the plan too.
func ParsePlanPrices(text string) (PlanPrices, error) {
	p := PlanPrices{sold: map[events.Plan]string{}, plans: map[string]events.Plan{}}
	for entry := range events.SettingEntries(text) {
		plan, price := events.Plan(entry.Name), entry.Value
		_, taken := p.plans[price]
		switch {
		case !plan.Known() || plan == events.FreePlan:
			return p, fmt.Errorf("%q does not name a plan that is sold", entry.Text)
		case !pricePattern.MatchString(price):
			return p, fmt.Errorf("%q must be a plan, = and the id of a price", entry.Text)
		case taken:
			return p, fmt.Errorf("the price %s occurs twice", price)
		}
		if p.plans[price] = plan; p.sold[plan] == "" {
			p.sold[plan] = price
		}
	}
	return p, nil
}

// planItem returns the part of a subscription that is a plan.
func (p PlanPrices) planItem(s PaymentSubscription) (item PaymentItem, plan events.Plan, found bool) {
	for _, item := range s.Items {
		if plan, found := p.plans[item.PriceID]; found {
			return item, plan, true
		}
	}
	return PaymentItem{}, "", false
}
