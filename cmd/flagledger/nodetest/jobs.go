package nodetest

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// JobsDone waits until what follows from all that was done so far is done as well.
func (s *Service) JobsDone() {
	s.T.Helper()
	// Invitations that wait for those before them look again now.
	s.jobsDone(`queue = 'mails' and state = 'scheduled'`)
}

// JobsRetried is JobsDone, and has jobs that failed, or fail meanwhile, done again at once.
func (s *Service) JobsRetried() {
	s.T.Helper()
	s.jobsDone(`queue = 'mails' and state = 'scheduled' or state = 'retryable'`)
}

// jobsDone waits until all jobs are done, and has those that wait done now.
func (s *Service) jobsDone(waitingJobs string) {
	s.T.Helper()
	head, err := s.Store().Head(s.T.Context())
	if err != nil {
		s.T.Fatal(err)
	}
	db, err := pgx.Connect(s.T.Context(), s.DatabaseURL)
	if err != nil {
		s.T.Fatal(err)
	}
	defer func() { _ = db.Close(context.Background()) }()
	s.Eventually("all jobs are done", func() bool {
		if _, err := db.Exec(
			s.T.Context(), `update jobs.river_job set state = 'available', scheduled_at = now() where `+waitingJobs,
		); err != nil {
			s.T.Fatal(err)
		}
		var reached events.Position
		var waiting int
		err := db.QueryRow(s.T.Context(), `select commit, prepare, (select count(*) from jobs.river_job
			where finalized_at is null) from keep.reactions`).
			Scan(&reached.Commit, &reached.Prepare, &waiting)
		if err != nil {
			s.T.Fatal(err)
		}
		return reached.Compare(head) >= 0 && waiting == 0
	})
}

// RetryJobs has jobs that failed done now.
func (s *Service) RetryJobs() {
	s.T.Helper()
	s.Exec(`update jobs.river_job set state = 'available', scheduled_at = now() where state = 'retryable'`)
}

// ResumeJobs has jobs begun again that were under way when their node was killed: else that is a minute after their
// beginning, or ten for periodic ones.
func (s *Service) ResumeJobs(killed time.Time) {
	s.T.Helper()
	s.Exec(
		`update jobs.river_job set attempted_at = attempted_at - interval '20 minutes' where state = 'running'
			and attempted_at < $1`,
		killed,
	)
}

// Exec carries out SQL in the database of the service.
func (s *Service) Exec(sql string, arguments ...any) {
	s.T.Helper()
	db, err := pgx.Connect(s.T.Context(), s.DatabaseURL)
	if err != nil {
		s.T.Fatal(err)
	}
	defer func() { _ = db.Close(context.Background()) }()
	if _, err := db.Exec(s.T.Context(), sql, arguments...); err != nil {
		s.T.Fatal(err)
	}
}
