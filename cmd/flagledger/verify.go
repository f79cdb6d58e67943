package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/events"
	"flagledger/events/export"
	"flagledger/events/proof"
	"flagledger/queries"
)

// verifyTrailCommand checks that no fact of a tenant was altered.
type verifyTrailCommand struct {
	Tenant     string   `type:"id" help:"The id of the tenant. A file of one tenant needs none."`
	Export     string   `help:"A file of export-facts, to be checked in place of the event store: no database is needed then."`
	Checkpoint []string `help:"A file with a signed checkpoint of the tenant. It may be given several times."`
	Key        string   `help:"The verifier key of the checkpoints; without it, that of the export or of the database is taken."`
}

// Help explains how to use the command.
func (verifyTrailCommand) Help() string {
	return "The facts of the tenant are read as they are stored, and hashed as docs/audit.md tells. They must lead to " +
		"the root in each checkpoint. In the event store, they must also be those of the audit trail, " +
		"and lead to all checkpoints that the service has signed. Checkpoints and a key that were kept elsewhere show what " +
		"whoever can write to the databases has altered."
}

// Run checks the facts and prints the result.
func (cmd verifyTrailCommand) Run(ctx context.Context) error {
	if cmd.Export != "" {
		if err := cmd.verifyFile(); err != nil {
			return fmt.Errorf("%s: %w", cmd.Export, err)
		}
		return nil
	}
	if cmd.Tenant == "" {
		return errors.New("--tenant or --export is needed")
	}
	return withStore(ctx, func(_ settings.Config, databaseURL string, store events.Store, log *slog.Logger) error {
		return cmd.verifyStore(ctx, databaseURL, store, log)
	})
}

// verification holds the state of reading a tenant's facts in log order.
type verification struct {
	streams     tenantFilter
	revisions   map[string]events.Revision
	tree        proof.CompactRange
	checkpoints []proof.Checkpoint // still to be reached, smallest first
	confirmed   int64              // the number of facts that a checkpoint confirms
	reached     int
	through     events.Position // up to here the audit trail has an entry for each fact; zero without a trail
	current     bool            // whether the trail reports so itself
}

func newVerification(tenantID string, checkpoints []proof.Checkpoint) *verification {
	slices.SortFunc(checkpoints, func(a, b proof.Checkpoint) int { return cmp.Compare(a.Size, b.Size) })
	return &verification{
		streams:     tenantFilter{tenantID, map[string]bool{}},
		revisions:   map[string]events.Revision{},
		checkpoints: checkpoints,
	}
}

// take reports whether a fact is the tenant's, and records its revision. It returns an error for a fact that cannot be
// the tenant's next.
func (v *verification) take(e events.Recorded) (bool, error) {
	if ours, err := v.streams.belongs(e); err != nil || !ours {
		return false, err
	}
	if after := v.revisions[e.Stream]; e.Revision != after+1 {
		return true, fmt.Errorf("entry %d: %s has revision %d after %d: a fact was removed, added or moved", v.tree.Size(),
			e.Stream, e.Revision, after)
	}
	v.revisions[e.Stream] = e.Revision
	return true, nil
}

// add adds the hash of a fact. The error names the entries between which something was altered.
func (v *verification) add(e hashedFact) error {
	if e.err != nil {
		return fmt.Errorf("entry %d: %w", v.tree.Size(), e.err)
	}
	for len(v.checkpoints) > 0 && v.checkpoints[0].Size == 0 && v.tree.Size() == 0 { // of a tenant without facts
		v.checkpoints = v.checkpoints[1:]
		v.reached++
	}
	v.tree.Add(e.leaf)
	for len(v.checkpoints) > 0 && v.checkpoints[0].Size <= v.tree.Size() {
		c := v.checkpoints[0]
		if c.Root != v.tree.Root() {
			return fmt.Errorf(
				"the facts are not those of the checkpoint of %d facts: one of the entries %d to %d was altered, removed, added "+
					"or moved; the last is %s@%d, %s",
				c.Size,
				v.confirmed,
				c.Size-1,
				e.Stream,
				e.Revision,
				e.Name,
			)
		}
		v.confirmed, v.checkpoints = c.Size, v.checkpoints[1:]
		v.reached++
	}
	return nil
}

// end checks that there are facts, and at least as many as in the checkpoints, and prints the result.
func (v *verification) end() error {
	if len(v.checkpoints) > 0 {
		size := v.checkpoints[0].Size
		return fmt.Errorf("a checkpoint is of %d facts, and there are %d: of the entries %d to %d, %d are missing", size,
			v.tree.Size(), v.confirmed, size-1, size-v.tree.Size())
	}
	if v.tree.Size() == 0 {
		return fmt.Errorf("there are no facts of a tenant %s", v.streams.tenantID)
	}
	fmt.Printf("%d facts, root %v\ncheckpoints that hold: %d, the last of %d facts\n", v.tree.Size(), v.tree.Root(),
		v.reached, v.confirmed)
	return nil
}

// openCheckpoints reads the given checkpoints, and verifies that they are the tenant's.
func (cmd verifyTrailCommand) openCheckpoints(tenantID, key string) (list []proof.Checkpoint, err error) {
	for _, path := range cmd.Checkpoint {
		signed, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		verifier := cmp.Or(cmd.Key, key)
		if verifier == "" {
			return nil, errors.New("there is no key that verifies checkpoints: give one with --key")
		}
		c, err := proof.Open(signed, verifier)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if c.TenantID != tenantID {
			return nil, fmt.Errorf("%s: the checkpoint is of the tenant %s, not of %s", path, c.TenantID, tenantID)
		}
		list = append(list, c)
	}
	return list, nil
}

func (cmd verifyTrailCommand) verifyFile() error {
	return readFacts(cmd.Export, func(r *export.Reader) error {
		tenantID := cmp.Or(r.Header.Tenant, cmd.Tenant)
		switch {
		case tenantID == "":
			return errors.New("the file has the facts of all tenants: --tenant must name one")
		case cmd.Tenant != "" && cmd.Tenant != tenantID:
			return fmt.Errorf("the file has the facts of the tenant %s, and --tenant names %s", tenantID, cmd.Tenant)
		}
		given, err := cmd.openCheckpoints(tenantID, r.Header.Key)
		if err != nil {
			return err
		}
		v := newVerification(tenantID, given)
		line := 1 // the header
		for e, err := range hashAll(r.All()) {
			if err != nil {
				return err
			}
			line++
			if _, known := events.TenantOf(e.Recorded); !known && e.Revision == 1 { // it names the stream's tenant
				e.Event, e.Err = events.Decode(e.Stored)
			}
			ours, err := v.take(e.Recorded)
			switch {
			case err != nil:
			case ours:
				err = v.add(e)
			case r.Header.Tenant != "":
				err = fmt.Errorf("%s@%d, %s, is no fact of the tenant %s, and the file is of that tenant's alone", e.Stream,
					e.Revision, e.Name, tenantID)
			}
			if err != nil {
				return fmt.Errorf("line %d: %w", line, err)
			}
		}
		if err := v.end(); err != nil {
			return err
		}
		if len(given) > 0 && cmd.Key == "" {
			fmt.Println(
				"the key is the file's own: only a key that was kept elsewhere, given with --key, shows whose checkpoints these " +
					"are",
			)
		}
		if len(given) == 0 {
			fmt.Println("without --checkpoint this shows no more than that the file is undamaged")
		}
		return nil
	})
}

func (cmd verifyTrailCommand) verifyStore(
	ctx context.Context, databaseURL string, store events.Store, log *slog.Logger,
) error {
	trail, err := node.OpenTrailReader(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer trail.Close()
	given, err := cmd.openCheckpoints(cmd.Tenant, trail.Key)
	if err != nil {
		return err
	}
	kept, err := trail.Checkpoints.All(ctx, cmd.Tenant)
	if err != nil {
		return err
	}
	head, err := store.Head(ctx)
	if err != nil {
		return err
	}
	v := newVerification(cmd.Tenant, append(given, kept...))
	tree, err := trail.Queries.AuditTree(ctx, cmd.Tenant)
	notBuilt := errors.Is(err, queries.ErrNotBuilt)
	if err == nil {
		v.through = head
		if v.current, err = trail.Wait(ctx, head); err == nil {
			tree, err = trail.Queries.AuditTree(ctx, cmd.Tenant)
		}
	}
	if err != nil && !notBuilt {
		return err
	}
	if err := v.compare(ctx, store, tree, showProgress("verifying", int64(head.Commit), log)); err != nil {
		return err
	}
	if v.tree.Size() < tree.Size {
		return fmt.Errorf("the audit trail has %d entries, and the store %d facts: entry %d and those after it are missing%s",
			tree.Size, v.tree.Size(), v.tree.Size(), inTrail(ctx, tree, v.tree.Size()))
	}
	if err := v.end(); err != nil {
		return err
	}
	if notBuilt {
		fmt.Println(
			"the audit trail is not built yet, so the facts were compared with checkpoints alone; a server builds it when it " +
				"starts",
		)
	}
	return nil
}

// compare compares the facts in the store with the audit trail, as far as it goes.
func (v *verification) compare(
	ctx context.Context, store events.Store, tree *queries.AuditTree, show func(string, events.Position),
) error {
	next, stop := iter.Pull2(tree.Leaves(ctx))
	defer stop()
	var after events.Position
	for {
		err := v.compareAfter(ctx, store, after, tree, next, show)
		gap, ok := errors.AsType[*events.GapError](err)
		if !ok {
			return err
		}
		switch missing, err := tree.NameIn(ctx, gap.First, gap.Last); {
		case err == nil:
			return fmt.Errorf("entry %d is missing in the store: %v: %w", missing.N, missing, gap)
		case errors.Is(err, queries.ErrNotBuilt):
			return fmt.Errorf("%w: the audit trail has no entry for what is missing, so whose facts these were is not known",
				gap)
		case !errors.Is(err, queries.ErrNotFound):
			return err
		}
		fmt.Printf("%v: by the audit trail, what is missing is none of this tenant's\n", gap)
		after = events.Position{Commit: gap.Last, Prepare: gap.Last}
	}
}

func (v *verification) compareAfter(
	ctx context.Context, store events.Store, after events.Position, tree *queries.AuditTree,
	next func() (tlog.Hash, error, bool), show func(string, events.Position),
) error {
	for e, err := range hashAll(allEvents(ctx, store, after)) {
		if err != nil {
			return err
		}
		n := v.tree.Size()
		ours, err := v.take(e.Recorded)
		if err != nil {
			return fmt.Errorf("%w%s", err, inTrail(ctx, tree, n))
		}
		if ours {
			held, err, has := next()
			if err != nil {
				return err
			}
			if !has && e.Position.Compare(v.through) <= 0 {
				return v.missingInTrail(e)
			}
			if has && e.err == nil && held != e.leaf {
				return fmt.Errorf("entry %d is not what the audit trail has: the store has %s@%d, %s, with the id %s%s", n,
					e.Stream, e.Revision, e.Name, e.ID, inTrail(ctx, tree, n))
			}
			if err := v.add(e); err != nil {
				return err
			}
		}
		show("verify", e.Position)
	}
	return nil
}

// missingInTrail returns the error for a fact after the end of the audit trail.
func (v *verification) missingInTrail(e hashedFact) error {
	text := fmt.Sprintf(
		"entry %d is missing in the audit trail, which ends before it: the store has %s@%d, %s, with the id %s",
		v.tree.Size(), e.Stream, e.Revision, e.Name, e.ID,
	)
	if !v.current {
		text += "; the trail has not come to the end of the log: while a server runs it does, so verify then"
	}
	return errors.New(text)
}

// inTrail describes an entry of the audit trail, if it exists.
func inTrail(ctx context.Context, tree *queries.AuditTree, n int64) string {
	name, err := tree.Name(ctx, n)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("; the audit trail has %v", name)
}
