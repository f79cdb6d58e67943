package edge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/renameio/v2"
	"github.com/google/uuid"

	"flagledger/commands/keep/keys"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/usage"
)

const (
	// reportInterval is the time between reports. An edge that is killed loses what it has counted since the last one.
	reportInterval = 5 * time.Second
	reportTimeout  = 10 * time.Second
	// maxAge is how long counts wait for the service: it takes none that are older.
	maxAge = 24*time.Hour - time.Minute
	// maxRows, maxSum and maxReportBytes limit a report to what the service takes at once.
	maxRows        = 4000
	maxSum         = 1_000_000_000
	maxReportBytes = 900 << 10
	// maxCounted limits the counts of an interval, maxWaitingBytes what waits for the service.
	maxCounted      = 200_000
	maxWaitingBytes = 64 << 20
)

// row is a count in a report.
type row struct {
	rowKey
	Count int64 `json:"count"`
}

// rowKey is what a count is of.
type rowKey struct {
	FlagKey     string    `json:"flagKey,omitempty"`
	KeyID       string    `json:"keyId,omitempty"` // of the caller
	VariationID string    `json:"variationId,omitempty"`
	Value       string    `json:"-"` // JSON; without a variation
	Reason      string    `json:"reason,omitempty"`
	Prefetch    bool      `json:"prefetch,omitempty"`
	Required    bool      `json:"required,omitempty"`
	Hour        time.Time `json:"hour"`
}

// bytes returns at least the size of a row in JSON.
func (k rowKey) bytes() int { return 256 + len(k.FlagKey) + len(k.Value) }

// MarshalJSON adds the value, which is JSON itself.
func (r row) MarshalJSON() ([]byte, error) {
	type plain struct {
		rowKey
		Value json.RawMessage `json:"value,omitempty"`
		Count int64           `json:"count"`
	}
	return json.Marshal(plain{r.rowKey, json.RawMessage(r.Value), r.Count})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *row) UnmarshalJSON(data []byte) error {
	var plain struct {
		rowKey
		Value json.RawMessage `json:"value"`
		Count int64           `json:"count"`
	}
	err := json.Unmarshal(data, &plain)
	r.rowKey, r.Value, r.Count = plain.rowKey, string(plain.Value), plain.Count
	return err
}

// report is what POST /api/v1/usage takes. The service takes each id once.
type report struct {
	ID     string `json:"reportId"`
	Counts []row  `json:"counts"`
}

// meter counts evaluations until the reporters take them. It implements evaluation.Counter.
type meter struct {
	now    func() time.Time
	mu     sync.Mutex
	counts map[counted]*tally
}

// counted is what evaluations are counted by. A value is told by where the compiled flag has it: counting copies none.
type counted struct {
	environmentID, keyID string
	flag                 *usage.Flag // nil for calls for all flags
	variationID          string
	value                *byte // its first byte; nil with a variation
	reason               evaluation.Reason
	prefetch, required   bool
	hour                 time.Time
}

type tally struct {
	n     int64
	value json.RawMessage // without a variation
}

func newMeter(now func() time.Time) *meter { return &meter{now: now, counts: map[counted]*tally{}} }

func (m *meter) hour() time.Time { return m.now().UTC().Truncate(time.Hour) }

// Count implements evaluation.Counter.
func (m *meter) Count(_ string, f *usage.Flag, environmentID string, r *evaluation.Result, keyID string) {
	hour := m.hour()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serve(counted{environmentID: environmentID, keyID: keyID, flag: f, reason: r.Reason, hour: hour}, r)
}

// CountRequired implements evaluation.Counter.
func (m *meter) CountRequired(_ string, f *usage.Flag, environmentID string, r *evaluation.Result) {
	hour := m.hour()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.require(environmentID, f, r, hour)
}

// CountCall implements evaluation.Counter.
func (m *meter) CountCall(c *usage.Call, _, environmentID, keyID string) {
	hour := m.hour()
	m.mu.Lock()
	defer m.mu.Unlock()
	c.Each(func(f *usage.Flag, r *evaluation.Result) {
		switch {
		case r != nil:
			m.serve(counted{environmentID: environmentID, keyID: keyID, flag: f, reason: r.Reason, hour: hour}, r)
		case f != nil: // the service does not tell who has prefetched a flag
			m.add(counted{environmentID: environmentID, flag: f, prefetch: true, hour: hour}, nil)
		default:
			m.add(counted{environmentID: environmentID, keyID: keyID, prefetch: true, hour: hour}, nil)
		}
	})
	c.EachRequired(func(f *usage.Flag, r *evaluation.Result) { m.require(environmentID, f, r, hour) })
}

// require counts what a flag served on behalf of another one. The service does not tell for whom or why. mu must be
// held.
func (m *meter) require(environmentID string, f *usage.Flag, r *evaluation.Result, hour time.Time) {
	m.serve(counted{environmentID: environmentID, flag: f, required: true, hour: hour}, r)
}

// serve counts what was served. mu must be held.
func (m *meter) serve(c counted, r *evaluation.Result) {
	c.variationID = r.VariationID
	var value json.RawMessage
	if c.variationID == "" && len(r.Value) > 0 {
		c.value, value = &r.Value[0], r.Value
	}
	m.add(c, value)
}

// add adds one. mu must be held.
func (m *meter) add(c counted, value json.RawMessage) {
	of := m.counts[c]
	if of == nil {
		if len(m.counts) >= maxCounted {
			return
		}
		of = &tally{value: value}
		m.counts[c] = of
	}
	of.n++
}

// take takes the counts of an environment.
func (m *meter) take(environmentID string) map[rowKey]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := map[rowKey]int64{}
	for c, of := range m.counts {
		if c.environmentID != environmentID {
			continue
		}
		delete(m.counts, c)
		k := rowKey{
			KeyID: c.keyID, VariationID: c.variationID, Value: string(of.value),
			Reason: string(c.reason), Prefetch: c.prefetch, Required: c.required, Hour: c.hour,
		}
		if c.flag != nil {
			k.FlagKey = c.flag.Key()
		}
		taken[k] += of.n
	}
	return taken
}

// reporter reports the usage of an environment to the service.
type reporter struct {
	config Config
	key    string
	meter  *meter
	client *http.Client
	path   string
	box    keys.Box

	sending *report // it may have arrived already
	waiting map[rowKey]int64
	bytes   int // of what waits
}

// savedUsage is the content of a reporter's file.
type savedUsage struct {
	Sending *report
	Waiting []row
}

// newReporter returns a reporter that begins with what its file holds.
func newReporter(c Config, key string, m *meter) (*reporter, error) {
	secret, err := secretOf(key)
	if err != nil {
		return nil, err
	}
	box, err := secret.Box("usage to report")
	if err != nil {
		return nil, err
	}
	r := &reporter{
		config: c, key: key, meter: m, client: &http.Client{Timeout: reportTimeout}, box: box, waiting: map[rowKey]int64{},
		path: filepath.Join(c.Folder, nameOf(key)+".usage"),
	}
	if err := r.begin(); err != nil {
		c.Log.Warn("the usage on disk that was not reported is ignored", "because", err)
	}
	return r, nil
}

func (r *reporter) begin() error {
	sealed, err := os.ReadFile(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	text, _, ok := r.box.Decrypt(sealed, nil)
	if !ok {
		return errSealed
	}
	var saved savedUsage
	if err := json.Unmarshal(text, &saved); err != nil {
		return err
	}
	r.sending = saved.Sending
	for _, one := range saved.Waiting {
		r.wait(one.rowKey, one.Count)
	}
	return nil
}

// save writes what is not reported to disk.
func (r *reporter) save() error {
	saved := savedUsage{Sending: r.sending}
	for k, n := range r.waiting {
		saved.Waiting = append(saved.Waiting, row{k, n})
	}
	text, err := json.Marshal(saved)
	if err != nil {
		return err
	}
	return renameio.WriteFile(r.path, r.box.Encrypt(text, nil), 0o600, renameio.IgnoreUmask())
}

// report reports all counts of an environment. What the service does not take is sent the next time. arrived says that
// the file has a report that has arrived.
func (r *reporter) report(ctx context.Context, environmentID string, arrived bool) error {
	for ; ; arrived = true {
		begins, err := r.advance(environmentID, true, arrived)
		if err != nil || !begins {
			return err
		}
		if err := r.send(ctx, r.sending); err != nil {
			return err
		}
		r.sending = nil
	}
}

// advance takes the new counts of an environment and, if it may, makes a report, which is to be sent if begins is true.
// It writes them to disk, also if the file has changed otherwise.
func (r *reporter) advance(environmentID string, mayReport, changed bool) (begins bool, err error) {
	if environmentID == "" {
		return false, nil
	}
	counted := r.collect(environmentID)
	begins = mayReport && r.makeReport()
	if !counted && !begins && !changed {
		return false, nil
	}
	err = r.keep()
	return begins && err == nil, err
}

// keep writes what is not reported to disk. If that fails, it removes the file, from which reports would be sent again.
func (r *reporter) keep() error {
	err := r.save()
	if err == nil {
		return nil
	}
	if old := os.Remove(r.path); old != nil && !errors.Is(old, fs.ErrNotExist) {
		return fmt.Errorf("the usage on disk is an old one and stays: %w", err)
	}
	r.config.Log.Warn("usage is not on disk before it is reported", "err", err)
	return nil
}

// collect adds the new counts of the environment to those that wait, and drops what is too old for the service. It
// reports whether there are new ones.
func (r *reporter) collect(environmentID string) bool {
	var dropped int64
	counts := r.meter.take(environmentID)
	for k, n := range counts {
		if !r.wait(k, n) {
			dropped += n
		}
	}
	oldest := r.config.Now().Add(-maxAge)
	tooOld := func(k rowKey) bool { return k.Hour.Add(time.Hour).Before(oldest) }
	for k, n := range r.waiting {
		if tooOld(k) {
			r.remove(k)
			dropped += n
		}
	}
	if r.sending != nil && tooOld(r.sending.Counts[0].rowKey) {
		for _, one := range r.sending.Counts {
			dropped += one.Count
		}
		r.sending = nil
	}
	if dropped > 0 {
		r.config.Log.Warn("evaluations are in no report: too many wait for the service, or for too long", "n", dropped)
	}
	return len(counts) > 0
}

// wait adds to what waits. It returns false if there is no room.
func (r *reporter) wait(k rowKey, n int64) bool {
	if _, known := r.waiting[k]; !known {
		if r.bytes+k.bytes() > maxWaitingBytes {
			return false
		}
		r.bytes += k.bytes()
	}
	r.waiting[k] += n
	return true
}

func (r *reporter) remove(k rowKey) {
	r.bytes -= k.bytes()
	delete(r.waiting, k)
}

// makeReport makes a report of the oldest hour that waits, unless one is to be sent again. It returns false if there is
// none. Rows of one hour become too old for the service together.
func (r *reporter) makeReport() bool {
	if r.sending != nil || len(r.waiting) == 0 {
		return r.sending != nil
	}
	var hour time.Time
	for k := range r.waiting {
		if hour.IsZero() || k.Hour.Before(hour) {
			hour = k.Hour
		}
	}
	r.sending = &report{ID: uuid.NewString()}
	sum, bytes := int64(maxSum), maxReportBytes
	for k, n := range r.waiting {
		if !k.Hour.Equal(hour) {
			continue
		}
		if bytes -= k.bytes(); len(r.sending.Counts) == maxRows || sum == 0 || bytes < 0 {
			break
		}
		taken := min(n, sum)
		sum -= taken
		r.sending.Counts = append(r.sending.Counts, row{k, taken})
		if taken == n {
			r.remove(k)
		} else {
			r.waiting[k] -= taken
		}
	}
	return true
}

// send sends a report. It returns nil too if the service refuses it for good.
func (r *reporter) send(ctx context.Context, sending *report) error {
	body, err := json.Marshal(sending)
	if err != nil {
		return err
	}
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, r.config.From+"/api/v1/usage", bytes.NewReader(body))
	if err != nil {
		return err
	}
	call.Header.Set("Authorization", "Bearer "+r.key)
	call.Header.Set("Content-Type", "application/json")
	answer, err := r.client.Do(call)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	switch code := answer.StatusCode; {
	case code/100 == 2:
		return nil
	case code == http.StatusUnprocessableEntity || code == http.StatusBadRequest:
		r.config.Log.Error("the service refuses a report of usage, which is dropped", "err", refusal(answer))
		return nil
	default:
		return refusal(answer)
	}
}

// run reports until ctx ends, and then once more. What is counted while the service takes long goes to disk meanwhile.
func (r *reporter) run(ctx context.Context, environmentID func() string) {
	tick := time.NewTicker(reportInterval)
	defer tick.Stop()
	var sent chan error // nil unless a report is under way
	for ctx.Err() == nil {
		arrived := false
		select {
		case <-ctx.Done():
			continue
		case err := <-sent:
			sent = nil
			if err != nil {
				r.warn(err)
				continue
			}
			r.sending, arrived = nil, true
		case <-tick.C:
		}
		begins, err := r.advance(environmentID(), sent == nil, arrived)
		if err != nil {
			r.warn(err)
		}
		if begins {
			sent = make(chan error, 1)
			go func(one *report, sent chan<- error) { sent <- r.send(ctx, one) }(r.sending, sent)
		}
	}
	arrived := sent != nil && <-sent == nil
	if arrived {
		r.sending = nil
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	if err := r.report(last, environmentID(), arrived); err != nil {
		r.warn(err)
	}
}

func (r *reporter) warn(err error) {
	r.config.Log.Warn("the usage of flags is not reported; the next attempt reports it", "err", err)
}
