package http_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

// BenchmarkFlagListsOfThePast reads pages of 50 of the 20,000 flags of a past time, with 20 versions each today. It
// reads a page of a new time, and further pages of it.
func BenchmarkFlagListsOfThePast(b *testing.B) {
	const flags, rounds, perRound = 20_000, 4, 5
	me := nodetest.New(b).SignUp("bench@example.com")
	db, err := pgx.Connect(b.Context(), me.Service.DatabaseURL)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close(context.Background()) }()
	production := events.EnvironmentRef{Name: "production"}
	if err := db.QueryRow(b.Context(), "select id from read.environments where tenant_id = $1 and name = $2", me.Tenant, production.Name).
		Scan(&production.ID); err != nil {
		b.Fatal(err)
	}
	store := me.Service.Store()
	project, _ := me.CreateProject("p")
	var times [rounds]time.Time
	for round := range rounds {
		var all errgroup.Group
		all.SetLimit(64)
		for i := range flags {
			all.Go(func() error {
				key := fmt.Sprintf("k%05d", i)
				var batch []events.Event
				for n := range perRound {
					version := round*perRound + n + 1
					var fact events.Fact
					switch {
					case version == 1:
						created := events.FlagCreated{
							ID:           uuid.NewString(),
							Name:         key,
							Type:         events.BooleanFlag,
							DefaultValue: []byte("false"),
							Salt:         "s",
						}
						if i%10 == 0 {
							created.ProjectID = project
						}
						fact = created
					case version%2 == 0 && (version/2+i)%2 == 0:
						fact = events.FlagEnabled{Environment: production}
					case version%2 == 0:
						fact = events.FlagDisabled{Environment: production}
					default:
						fact = events.FlagUpdated{Description: &events.Change[string]{To: fmt.Sprint("of version ", version)}}
					}
					batch = append(batch, events.Event{
						ID: uuid.Must(uuid.NewV7()),
						Metadata: events.Metadata{
							Time:  time.Now().UTC().Truncate(time.Millisecond),
							Actor: events.Actor{Kind: events.UserActor, ID: me.UserID},
						},
						Fact: fact,
					})
				}
				_, err := store.Append(b.Context(), events.FlagStream(me.Tenant, key), events.Revision(round*perRound), batch)
				return err
			})
		}
		if err := all.Wait(); err != nil {
			b.Fatal(err)
		}
		times[round] = time.Now()
		me.Service.Eventually("the flags are listed", func() bool {
			return me.Attempt("GET", "/api/v1/flags?limit=1&q=k19999&at="+times[round].UTC().Format(time.RFC3339Nano), "").Status == 200
		})
		// as the database does itself after a while
		for _, table := range []string{"flags", "flag_environments", "flag_spans", "flag_environment_spans", "flag_versions"} {
			if _, err := db.Exec(b.Context(), "vacuum analyze read."+table); err != nil {
				b.Fatal(err)
			}
		}
	}
	at := func() string { // between the first and the last round
		return times[0].Add(rand.N(times[rounds-1].Sub(times[0]))).UTC().Format(time.RFC3339Nano)
	}
	read := func(b *testing.B, query func() string) {
		var took nodetest.Samples
		for b.Loop() {
			a := me.Attempt("GET", "/api/v1/flags?limit=50&"+query(), "")
			if a.Status != 200 {
				b.Fatal(a)
			}
			took.Add(a.Took)
		}
		took.Report(b, 50)
		took.Report(b, 99)
	}
	for _, filter := range []string{"", "&enabled=true", "&enabled=false", "&projectId=" + project, "&q=199", "&sort=-updatedAt"} {
		for _, offset := range []int{0, 10_000} {
			b.Run(fmt.Sprintf("first%s/offset=%d", filter, offset), func(b *testing.B) {
				read(b, func() string { return fmt.Sprintf("offset=%d%s&at=%s", offset, filter, at()) })
			})
		}
		then := at()
		b.Run("next"+filter, func(b *testing.B) {
			read(b, func() string { return fmt.Sprintf("offset=%d%s&at=%s", 50*rand.IntN(200), filter, then) })
		})
	}
}
