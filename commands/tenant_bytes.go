package commands

import "context"

// reserveBytes admits a command by which the flags of a tenant grow. Its facts must be appended before release. It
// keeps the bound of the tenant, and that of all unpaid tenants of its creator together; for the demo flags of a
// sandbox, which are small, only the first.
//
// Errors are *Error: Conflict where the flags would be too large together, and those of Count.
func (w *Writer) reserveBytes(ctx context.Context, cmd any, tenantID string, growth int) (release func(), err error) {
	if growth <= 0 {
		return func() {}, nil
	}
	_, bound := w.TenantFlagBytes(tenantID)
	leaveTenant, err := w.reserve(ctx, "bytes of the flags of "+tenantID, bound, growth, func() int {
		used, _ := w.TenantFlagBytes(tenantID)
		return used
	}, func(size int) error {
		return refuse(Conflict, "the tenant's flags would take %d bytes: on its plan they may take %d", size, bound)
	})
	if _, demo := cmd.(ResetDemoFlag); err != nil || demo {
		return leaveTenant, err
	}
	creator := w.UnpaidCreator(tenantID)
	if creator == "" {
		return leaveTenant, nil
	}
	_, together := w.UnpaidFlagBytes(creator)
	leaveCreator, err := w.reserve(
		ctx,
		"bytes of the flags of the unpaid tenants of "+creator,
		together,
		growth,
		func() int {
			used, _ := w.UnpaidFlagBytes(creator)
			return used
		},
		func(int) error { // the caller need not be a member of the others
			return refuse(Conflict,
				"the flags of all free and sandbox tenants of this one's creator may take %d bytes together, and would take more",
				together)
		},
	)
	if err != nil {
		leaveTenant()
		return nil, err
	}
	return func() {
		leaveCreator()
		leaveTenant()
	}, nil
}

// reserve admits a growth, or refuses it with tooLarge if things would then take more bytes than the bound.
//
// Near the bound it admits one change at a time, as Admit does. Near is what the largest changes that a tenant may have
// under way can grow by, or more for a larger growth.
func (w *Writer) reserve(
	ctx context.Context, things string, bound, growth int, count func() int, tooLarge func(size int) error,
) (release func(), err error) {
	used, release, err := w.admitUpTo(ctx, things,
		limit{bound: bound, margin: max(tenantCommands*maxFlagBytes, countMargin*growth), growth: growth}, nil, count)
	if err != nil {
		return nil, err
	}
	if used+growth > bound {
		release()
		return nil, tooLarge(used + growth)
	}
	return release, nil
}
