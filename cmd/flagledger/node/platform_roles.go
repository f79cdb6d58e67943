package node

import (
	"context"
	"log/slog"
	"time"

	"flagledger/queries"
)

// warnOfPlatformRoles logs once how many people have a platform role without being named in a setting. In development,
// anyone could have got one without proving an address. It waits until the read models are available.
func warnOfPlatformRoles(ctx context.Context, read *queries.Queries, log *slog.Logger) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		people, invitations, err := read.GivenPlatformRoles(ctx)
		switch {
		case err == nil && people+invitations > 0:
			log.Warn(
				"people have roles on the platform, or pending invitations to one: those that were given in development count "+
					"too. GET /api/v1/admin/users and GET /api/v1/admin/invitations list them, GET "+
					"/api/v1/admin/audit?action=user.platform_role_changed who gave which and when",
				"people", people, "invitations", invitations)
			return
		case err == nil:
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
