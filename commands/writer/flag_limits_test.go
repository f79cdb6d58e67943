package writer

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/state"
)

// A node never exceeds the limit of a tenant's flags in bytes, however many callers change them. Each further node may
// exceed it by one change.
func TestTheBytesOfATenantAreBounded(t *testing.T) {
	const size = 10_000
	for nodes := 1; nodes <= 3; nodes++ {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			store, _ := newMemory()
			limit := 5*size + size/2
			smallest := foldOf[state.Flag]([]events.Fact{events.FlagCreated{Key: "k00.00", Name: "k00.00"}})
			var running sync.WaitGroup
			var made atomic.Int64
			for node := range nodes {
				n := newLagging(store)
				n.quotas = quotasFunc(func() TenantLimits {
					return TenantLimits{FlagBytes: int(n.shown.Load()) * size, MaxFlagBytes: limit}
				})
				for caller := range 16 {
					running.Go(func() {
						value := textOf(size - smallest.Bytes())
						c := commands.CreateFlag{
							TenantID:     "t",
							Key:          fmt.Sprintf("k%02d.%02d", node, caller),
							Type:         events.StringFlag,
							DefaultValue: value,
						}
						switch flag, _, err := Do(t.Context(), n.Writer, By{}, c); {
						case err == nil:
							if made.Add(1); flag.Bytes() != size {
								t.Errorf("a flag has %d bytes", flag.Bytes())
							}
						case commands.KindOf(err) != commands.Conflict:
							t.Error(err)
						}
					})
				}
			}
			running.Wait()
			if n := int(made.Load()); n < 5 || n > 5+nodes-1 {
				t.Errorf("%d flags were made, want 5, and at most %d", n, 5+nodes-1)
			}
		})
	}
	t.Run("also by a small change while large ones are not shown yet", func(t *testing.T) {
		_, w := newMemory()
		const limit = 10 << 20
		used := limit - 7*commands.MaxFlagBytes
		w.await = func(context.Context, events.Position, []string) bool {
			used = limit
			return true
		}
		w.quotas = quotasFunc(func() TenantLimits { return TenantLimits{FlagBytes: used, MaxFlagBytes: limit} })
		if _, _, err := Do(
			t.Context(), w, By{},
			commands.CreateTenant{ID: "t", Name: "n", Creator: "u", Environments: []events.EnvironmentRef{testEnvironment}},
		); err != nil {
			t.Fatal(err)
		}
		used = limit - 7*commands.MaxFlagBytes
		if _, _, err := Do(t.Context(), w, By{}, commands.CreateFlag{TenantID: "t", Key: "k", Type: events.StringFlag}); commands.KindOf(err) != commands.Conflict {
			t.Errorf("one more is made: %v", err)
		}
	})
	t.Run("demo flags are made whatever the creator's other tenants have", func(t *testing.T) {
		_, w := newMemory()
		w.await = NoWait
		limit := 1 << 30
		w.quotas = quotasFunc(func() TenantLimits {
			return TenantLimits{MaxFlagBytes: limit, Creator: "u", FreeBytes: 123_456_789, MaxFreeBytes: 5000}
		})
		_, _, err := Do(t.Context(), w, By{}, commands.CreateFlag{TenantID: "t", Key: "k", Type: events.StringFlag})
		if text := fmt.Sprint(err); commands.KindOf(err) != commands.Conflict || !strings.Contains(text, "5000") ||
			strings.Contains(text, "123") {
			t.Errorf("another flag is made, or refused with what others have: %v", err)
		}
		demo := commands.ResetDemoFlag{TenantID: "t", Key: commands.DemoFlags()[0], ID: "f", DemoReset: commands.DemoReset{OnlyMissing: true}}
		if f, _, err := Do(t.Context(), w, By{}, demo); err != nil || !f.Exists {
			t.Errorf("a demo flag: %v", err)
		}
		limit, demo.Key = 10, commands.DemoFlags()[1]
		if _, _, err := Do(t.Context(), w, By{}, demo); commands.KindOf(err) != commands.Conflict {
			t.Errorf("the tenant's own limit does not hold: %v", err)
		}
	})
	t.Run("and go on where they are larger, as after a plan has ended", func(t *testing.T) {
		_, w := newMemory()
		w.await = NoWait
		limit := 1 << 30
		w.quotas = quotasFunc(func() TenantLimits { return TenantLimits{FlagBytes: 10_000, MaxFlagBytes: limit} })
		ref := commands.FlagRef{TenantID: "t", Key: "k"}
		do := func(c commands.Command[state.Flag]) error {
			_, _, err := Do(context.Background(), w, By{}, c)
			return err
		}
		if err := do(
			commands.CreateFlag{TenantID: "t", Key: "k", Type: events.StringFlag, DefaultValue: textOf(1000)},
		); err != nil {
			t.Fatal(err)
		}
		limit = 5000
		if err := do(commands.UpdateFlag{FlagRef: ref, DefaultValue: textOf(1001)}); commands.KindOf(err) != commands.Conflict ||
			!strings.Contains(err.Error(), "5000") {
			t.Errorf("it grows: %v", err)
		}
		for _, c := range []commands.Command[state.Flag]{
			commands.UpdateFlag{FlagRef: ref, DefaultValue: textOf(999)}, commands.SwitchFlag{FlagRef: ref, Environment: testEnvironment, On: true}, commands.DeleteFlag{FlagRef: ref},
		} {
			if err := do(c); err != nil {
				t.Errorf("%T: %v", c, err)
			}
		}
		if err := do(commands.CreateFlag{TenantID: "t", Key: "k", Type: events.StringFlag}); commands.KindOf(err) != commands.Conflict {
			t.Errorf("one more is made: %v", err)
		}
	})
}

// quotasFunc is Quotas that are the same for each tenant.
type quotasFunc func() TenantLimits

func (f quotasFunc) Limits(string) TenantLimits { return f() }

func (quotasFunc) Wrote(string, int) {}
