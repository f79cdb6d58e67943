package payment_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flagledger/commands/billing"
	"flagledger/commands/payment"
	"flagledger/commands/tooltest"
)

// mockVersion is the version of Stripe's mock server, which checks calls against its description of Stripe's API.
const mockVersion = "v0.185.0"

// buildTakes limits the download and build of the mock server.
const buildTakes = 10 * time.Minute

// mock starts Stripe's mock server and returns its address. If it cannot be downloaded, the test is skipped, which
// `make test` reports at its end, or fails in CI.
func mock(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), buildTakes)
	defer cancel()
	tools, err := tooltest.Folder(ctx)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(tools, "stripe-mock-"+mockVersion)
	install := exec.CommandContext(ctx, "go", "install", "github.com/stripe/stripe-mock@"+mockVersion)
	install.Env = append(os.Environ(), "GOBIN="+folder, "GOFLAGS=-trimpath")
	output, err := install.CombinedOutput()
	if err != nil {
		t.Logf("%s", output)
	}
	tooltest.Require(t, "stripe-mock", err)
	server := exec.CommandContext(t.Context(), filepath.Join(folder, "stripe-mock"), "-http-addr", "127.0.0.1:")
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if _, address, found := strings.Cut(lines.Text(), "Listening for HTTP at address: "); found {
			go func() { // it writes a line for each call
				for lines.Scan() {
				}
			}()
			return "http://" + address
		}
	}
	t.Fatal("stripe-mock has ended")
	return ""
}

// Stripe's description of its API allows each call, and we understand each answer of the described shape.
func TestCallsKeepToStripesDescription(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), payment.Open(payment.Settings{SecretKey: "sk_test_123", Currency: "eur", Base: mock(t)})
	check := func(what string, ok bool, err error) {
		t.Helper()
		if err != nil || !ok {
			t.Errorf("%s: %v, %v", what, ok, err)
		}
	}
	customer, err := s.NewCustomer(ctx, "customer-key", "tenant")
	check("NewCustomer", customer != "", err)
	found, err := s.Customer(ctx, "cus_1")
	check("Customer", found.ID == "cus_1", err)
	list, err := s.Subscriptions(ctx, "cus_1")
	check("Subscriptions", len(list) > 0 && len(list[0].Items) > 0, err)
	one, err := s.Subscription(ctx, "sub_1")
	check("Subscription", one.ID == "sub_1", err)
	check("CancelSubscription", true, s.CancelSubscription(ctx, "sub_1"))
	promotion, err := s.PromotionCode(ctx, "SPRING")
	check("PromotionCode", promotion != "", err)
	page := billing.CheckoutPage{
		TenantID:   "tenant",
		CustomerID: "cus_1",
		PriceID:    "price_1",
		Referral:   "partner-7",
		Discount:   billing.Discount{Promotion: "promo_1"},
		SuccessURL: "https://app.example.com/done?session={CHECKOUT_SESSION_ID}",
		CancelURL:  "https://app.example.com",
	}
	url, err := s.Checkout(ctx, "key", page)
	check("Checkout of a subscription", url != "", err)
	check("CloseCheckouts", true, s.CloseCheckouts(ctx, "cus_1", false))
	page.PriceID, page.Product, page.Discount = "", billing.Product{
		ID:     "prod_1",
		Amount: 4900,
	}, billing.Discount{
		Coupon: "LAUNCH25",
	}
	url, err = s.Checkout(ctx, "", page)
	check("Checkout of a product", url != "", err)
	change := &billing.PlanChange{
		SubscriptionID: "sub_1",
		ItemID:         "si_1",
		PriceID:        "price_2",
		Discount:       billing.Discount{Promotion: "promo_1"},
		DoneURL:        "https://app.example.com",
	}
	for what, portal := range map[string]billing.PortalPage{
		"Portal":        {},
		"a plan change": {Change: change},
		"a plan's coupon": {Change: with(change, func(c **billing.PlanChange) {
			changed := **c
			changed.Discount = billing.Discount{Coupon: "c"}
			*c = &changed
		})},
		"a cancellation": {Cancel: "sub_1"},
	} {
		portal.CustomerID, portal.ReturnURL = "cus_1", "https://app.example.com"
		url, err = s.Portal(ctx, "key", portal)
		check(what, url != "", err)
	}
}
