// Package idempotency stores the answers to requests with an Idempotency-Key for all nodes, so that a repeated request
// runs once.
package idempotency

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
	"flagledger/commands/keep"
	"flagledger/commands/writer"
)

const (
	// TTL is how long a key is stored.
	TTL = 24 * time.Hour
	// lease limits an attempt before another one may begin, because its node may have died.
	lease = 30 * time.Second
)

// Requests stores requests with a key in a database.
type Requests struct {
	db      *pgxpool.Pool
	timeout time.Duration
	now     func() time.Time
}

// New returns the requests in a database. timeout is the longest wait for the database, two seconds if 0. now returns
// the time.
func New(db *pgxpool.Pool, timeout time.Duration, now func() time.Time) *Requests {
	return &Requests{db: db, timeout: cmp.Or(timeout, 2*time.Second), now: now}
}

// Request is a request with a key.
type Request struct {
	Key     string
	Scope   string // the key's owner and use
	Content string // what a repetition must have in common
}

func (r Request) storedScope() []byte {
	key, scope := sha256.Sum256([]byte(r.Key)), sha256.Sum256([]byte(r.Scope))
	sum := sha256.Sum256(append(key[:], scope[:]...))
	return sum[:]
}

func (r Request) contentMAC() []byte {
	key := r.derive(r.storedScope(), "flagledger content")
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(r.Content))
	return mac.Sum(nil)
}

// Answer is the answer to a request.
type Answer struct {
	Status int
	Header map[string][]string
	Body   []byte
}

// Attempt is the right to carry out a request. It ends with Finish or Abandon, or by itself after half a minute.
type Attempt struct {
	// Once identifies the request across its repetitions.
	Once *writer.Once

	requests *Requests
	request  Request
	claim    uuid.UUID
}

// Begin returns the answer to a repeated request, or else the right to carry it out. Errors are *commands.Error:
// Invalid if the key was used for a different request, Conflict while another attempt runs, Unavailable if the
// database cannot be reached.
func (rs *Requests) Begin(ctx context.Context, r Request) (*Attempt, *Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, rs.timeout)
	defer cancel()
	for {
		clock, now := time.Now(), rs.now().Truncate(time.Millisecond)
		attempt := &Attempt{requests: rs, request: r, claim: uuid.New()}
		inserted, err := rs.db.Exec(
			ctx,
			`insert into keep.idempotency (scope, content, began_at, claim, claimed_until) values ($1, $2, $3, $4, $5)
			on conflict (scope) do nothing`,
			r.storedScope(),
			r.contentMAC(),
			now,
			attempt.claim,
			now.Add(lease),
		)
		if err != nil {
			return nil, nil, databaseError(err)
		}
		if inserted.RowsAffected() == 1 {
			attempt.Once = writer.NewOnce(r.storedScope(), now)
			attempt.Once.AssumeFirstUntil(clock.Add(lease / 2)) // well before another node takes over by its clock
			return attempt, nil, nil
		}
		var began time.Time
		err = rs.db.QueryRow(ctx, `update keep.idempotency set content = $2, claim = $4, claimed_until = $5, answer = null,
				began_at = case when began_at <= $6 then $3 else began_at end
			where scope = $1 and (began_at <= $6 or answer is null and claimed_until <= $3 and content = $2)
			returning began_at`, r.storedScope(), r.contentMAC(), now, attempt.claim, now.Add(lease), now.Add(-TTL)).Scan(&began)
		if err == nil {
			attempt.Once = writer.NewOnce(r.storedScope(), began)
			return attempt, nil, nil
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return nil, nil, databaseError(err)
		}
		answer, found, err := rs.answer(ctx, r)
		if found || err != nil {
			return nil, answer, err
		}
	}
}

// Resume works like Begin for a request that must not run for the first time. It returns the answer, or the right to
// carry out an attempt that never ended, or nil for both.
func (rs *Requests) Resume(ctx context.Context, r Request) (*Attempt, *Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, rs.timeout)
	defer cancel()
	now := rs.now().Truncate(time.Millisecond)
	attempt := &Attempt{requests: rs, request: r, claim: uuid.New()}
	var began time.Time
	err := rs.db.QueryRow(ctx, `update keep.idempotency set claim = $3, claimed_until = $4
		where scope = $1 and content = $2 and answer is null and claimed_until <= $5 and began_at > $6 returning began_at`,
		r.storedScope(), r.contentMAC(), attempt.claim, now.Add(lease), now, now.Add(-TTL)).Scan(&began)
	if err == nil {
		attempt.Once = writer.NewOnce(r.storedScope(), began)
		return attempt, nil, nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return nil, nil, databaseError(err)
	}
	answer, _, err := rs.answer(ctx, r)
	return nil, answer, err
}

func (rs *Requests) answer(ctx context.Context, r Request) (answer *Answer, found bool, err error) {
	var content, encrypted []byte
	err = rs.db.QueryRow(ctx, `select content, answer from keep.idempotency where scope = $1 and began_at > $2`, r.storedScope(), rs.now().Add(-TTL)).
		Scan(&content, &encrypted)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, false, nil
	case err != nil:
		return nil, false, databaseError(err)
	case !bytes.Equal(content, r.contentMAC()):
		return nil, true, commands.InvalidField("Idempotency-Key",
			"was used for a different request: a key is for one request, which may be repeated unchanged")
	case encrypted == nil:
		return nil, true, &commands.Error{
			Kind:   commands.Conflict,
			Detail: "a request with this Idempotency-Key is still being carried out",
		}
	}
	answer, err = decrypt(r, encrypted)
	return answer, true, err
}

// Finish stores the answer, unless another attempt has begun meanwhile.
func (a *Attempt) Finish(ctx context.Context, answer Answer) error {
	encrypted, err := encrypt(a.request, answer)
	if err != nil {
		return err
	}
	return a.end(ctx, encrypted)
}

// Abandon allows another attempt with the same ids.
func (a *Attempt) Abandon(ctx context.Context) error { return a.end(ctx, nil) }

func (a *Attempt) end(ctx context.Context, encrypted []byte) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.requests.timeout)
	defer cancel()
	_, err := a.requests.db.Exec(ctx,
		`update keep.idempotency set answer = $3, claimed_until = '-infinity' where scope = $1 and claim = $2`,
		a.request.storedScope(), a.claim, encrypted)
	return databaseError(err)
}

func databaseError(err error) error {
	return keep.DatabaseError("the Idempotency-Key cannot be honoured at the moment: the database cannot be reached", err)
}

// RemoveOld deletes expired keys.
func (rs *Requests) RemoveOld(ctx context.Context) error {
	_, err := rs.db.Exec(ctx, `delete from keep.idempotency where began_at <= $1`, rs.now().Add(-TTL))
	return err
}
