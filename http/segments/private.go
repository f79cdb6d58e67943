package segments

import (
	"context"
	"net/http"
	"slices"

	"flagledger/commands"
	"flagledger/events/state"
	"flagledger/http/rest"
)

// privateText is part of the descriptions of operations about private segments.
const privateText = "A private segment records hashes of its members: they can be checked, but not listed."

func (a *API) addForget() {
	forget := rest.Operation("POST", path+"/forget", "forget-segment-members", tag,
		"Forget the members of a private segment")
	forget.Description = "Empties both lists, and deletes the salt of their hashes: from then on nobody can tell who " +
		"was in them, and answers about earlier times count them as empty too. That holds for deleted segments and for " +
		"earlier ones with the key as well, and none of them is reverted to a version from before (409). The answer is " +
		"409 if no segment with the key was private: the members stay in the history."
	forget.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Admin}, forget,
		func(ctx context.Context, in *SegmentChange) (*segmentOutput, error) {
			tenant := rest.PrincipalOf(ctx).Tenant
			cmd := commands.ForgetMembers{SegmentRef: in.ref(ctx)}
			if live, ok := tenant.Segments().Find(in.Key); ok && live.State().Private {
				var err error
				if cmd.SaltID, err = a.Salts.Add(ctx, tenant.ID(), live.State().ID); err != nil {
					return nil, err
				}
			}
			out, err := a.write(ctx, cmd)
			if err != nil {
				a.dropSalt(ctx, cmd.SaltID, err)
				return nil, err
			}
			slot, err := a.EnterPast(ctx)
			if err != nil {
				return nil, err
			}
			defer slot.Leave()
			named, forgotten, err := a.Queries.SegmentSalts(ctx, tenant.ID(), in.Key)
			if err != nil {
				return nil, err
			}
			if !slices.Contains(named, cmd.SaltID) { // an earlier attempt has named another, or there is no private segment
				forgotten = append(forgotten, cmd.SaltID)
			}
			return out, a.Salts.Remove(ctx, tenant.ID(), forgotten...)
		})
}

// dropSalt deletes the salt of a command that was refused.
func (a *API) dropSalt(ctx context.Context, id string, refusal error) {
	kind := commands.KindOf(refusal)
	if id == "" || kind == commands.Unavailable || kind == commands.Internal { // it may have been recorded
		return
	}
	if err := a.Salts.Remove(ctx, rest.PrincipalOf(ctx).Tenant.ID(), id); err != nil {
		a.Log.Warn("the salt of a refused change stays", "err", err)
	}
}

// hash replaces the members of a change of a private segment by their hashes.
func (a *API) hash(ctx context.Context, change *commands.ChangeMembers) error {
	live, ok := rest.PrincipalOf(ctx).Tenant.Segments().Find(change.Key)
	if !ok || !live.State().Private {
		return nil
	}
	s, err := a.Queries.WithSalt(ctx, live.State())
	if err != nil {
		return err
	}
	change.SaltID = s.SaltID
	return commands.HashMembers(s.Salt, change.Add, change.Remove)
}

// errPrivate refuses to list the members of a private segment.
func errPrivate(s *state.Segment) error {
	if !s.Private {
		return nil
	}
	return rest.NewProblem(http.StatusConflict, "the segment is private: its members cannot be listed, only checked")
}
