package tenants

import (
	"context"
	"time"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events/state"
)

// IssueSecret carries out a command that stores a client's new secret by its hash, and returns the client and the
// secret, which is not stored. A retried request, whose secret was lost with the answer, gets another one.
func IssueSecret(
	ctx context.Context, w *writer.Writer, by writer.By, do writer.Runner[state.Tenant], client commands.ClientRef,
	now time.Time,
	command func(hash []byte) commands.Command[state.Tenant],
) (state.OAuthClient, string, writer.Done, error) {
	secret, hash := commands.NewSecret()
	tenant, done, err := do(ctx, command(hash))
	if err == nil && done.Repeated {
		by.Once = nil
		secret, hash = commands.NewSecret()
		tenant, done, err = writer.Do(ctx, w, by, commands.RotateSecret{ClientRef: client, SecretHash: hash, Now: now})
	}
	return tenant.Clients[client.ID], secret, done, err
}
