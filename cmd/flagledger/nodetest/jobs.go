package nodetest

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// JobsDone waits until the jobs of all earlier calls are done.
func (s *Service) JobsDone() {
	s.T.Helper()
	// Pending invitations are retried now.
	s.jobsDone(`queue = 'mails' and state = 'scheduled'`)
}

// JobsRetried is JobsDone with immediate retries of failed jobs.
func (s *Service) JobsRetried() {
	s.T.Helper()
	s.jobsDone(`queue = 'mails' and state = 'scheduled' or state = 'retryable'`)
}

// jobsDone waits until all jobs are done and runs scheduled ones at once.
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

// RetryJobs retries failed jobs at once.
func (s *Service) RetryJobs() {
	s.T.Helper()
	s.Exec(`update jobs.river_job set state = 'available', scheduled_at = now() where state = 'retryable'`)
}

// ResumeJobs restarts jobs of a killed node at once. Otherwise they resume a minute after their start, periodic ones
// after ten.
func (s *Service) ResumeJobs(killed time.Time) {
	s.T.Helper()
	s.Exec(
		`update jobs.river_job set attempted_at = attempted_at - interval '20 minutes' where state = 'running'
			and attempted_at < $1`,
		killed,
	)
}

// Exec runs SQL in the service's database.
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
