package edge

import (
	"bytes"
	"cmp"
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
	// reportInterval is how often counts are written to disk and reported: a killed edge loses those of this time.
	reportInterval = 5 * time.Second
	reportTimeout  = 10 * time.Second
	// maxAge is how long counts wait for the service: it takes none that are older.
	maxAge = 24*time.Hour - time.Minute
	// maxRows and maxSum limit a report to what the service takes at once, maxWaiting the rows that wait.
	maxRows    = 4000
	maxSum     = 1_000_000_000
	maxWaiting = 200_000
)

// row is a count in a report.
type row struct {
	rowKey
	Count int64 `json:"count"`
}

// rowKey is what a count is of.
type rowKey struct {
	FlagKey     string    `json:"flagKey,omitempty"`
	KeyID       string    `json:"keyId"` // of the caller
	VariationID string    `json:"variationId,omitempty"`
	Value       string    `json:"-"` // JSON; without a variation
	Reason      string    `json:"reason,omitempty"`
	Prefetch    bool      `json:"prefetch,omitempty"`
	Hour        time.Time `json:"hour"`

	environmentID string
}

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

// meter counts evaluations until the service has them. It implements evaluation.Counter.
type meter struct {
	now    func() time.Time
	mu     sync.Mutex
	counts map[rowKey]int64 // since they were last taken
}

func newMeter(now func() time.Time) *meter { return &meter{now: now, counts: map[rowKey]int64{}} }

// Count implements evaluation.Counter.
func (m *meter) Count(_ string, f *usage.Flag, environmentID string, r *evaluation.Result, keyID string) {
	k := rowKey{
		FlagKey: f.Key(), KeyID: keyID, VariationID: r.VariationID, Reason: string(r.Reason),
		Hour: m.now().UTC().Truncate(time.Hour), environmentID: environmentID,
	}
	if k.VariationID == "" {
		k.Value = string(r.Value)
	}
	m.add(k)
}

// CountCall implements evaluation.Counter.
func (m *meter) CountCall(c *usage.Call, tenantID, environmentID, keyID string) {
	c.Each(func(f *usage.Flag, r *evaluation.Result) {
		if r != nil {
			m.Count(tenantID, f, environmentID, r, keyID)
			return
		}
		k := rowKey{KeyID: keyID, Prefetch: true, Hour: m.now().UTC().Truncate(time.Hour), environmentID: environmentID}
		if f != nil {
			k.FlagKey = f.Key()
		}
		m.add(k)
	})
}

func (m *meter) add(k rowKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.counts[k]; known || len(m.counts) < maxWaiting {
		m.counts[k]++
	}
}

// take takes the counts of an environment.
func (m *meter) take(environmentID string) map[rowKey]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := map[rowKey]int64{}
	for k, n := range m.counts {
		if k.environmentID == environmentID {
			taken[k] = n
			delete(m.counts, k)
		}
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
}

// account is the content of a reporter's file.
type account struct {
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
	var saved account
	if err := json.Unmarshal(text, &saved); err != nil {
		return err
	}
	r.sending = saved.Sending
	for _, one := range saved.Waiting {
		r.waiting[one.rowKey] += one.Count
	}
	return nil
}

// save writes what is not reported to disk.
func (r *reporter) save() error {
	saved := account{Sending: r.sending}
	for k, n := range r.waiting {
		saved.Waiting = append(saved.Waiting, row{k, n})
	}
	text, err := json.Marshal(saved)
	if err != nil {
		return err
	}
	return renameio.WriteFile(r.path, r.box.Encrypt(text, nil), 0o600, renameio.IgnoreUmask())
}

// report takes the new counts of an environment, writes them to disk and sends them. What the service does not take is
// sent the next time.
func (r *reporter) report(ctx context.Context, environmentID string) error {
	r.collect(environmentID)
	if !r.next() {
		return nil
	}
	for more := true; more; more = r.next() {
		if err := r.save(); err != nil {
			return fmt.Errorf("usage could not be written to disk: %w", err)
		}
		if err := r.send(ctx); err != nil {
			return err
		}
		r.sending = nil
	}
	return r.save()
}

// collect adds the new counts of the environment to those that wait, and drops those that are too old for the service.
func (r *reporter) collect(environmentID string) {
	for k, n := range r.meter.take(environmentID) {
		k.environmentID = ""
		if _, known := r.waiting[k]; known || len(r.waiting) < maxWaiting {
			r.waiting[k] += n
		}
	}
	oldest := r.config.Now().Add(-maxAge)
	for k := range r.waiting {
		if k.Hour.Add(time.Hour).Before(oldest) {
			delete(r.waiting, k)
		}
	}
}

// next makes a report of what waits, unless one is to be sent again. It returns false if there is none.
func (r *reporter) next() bool {
	if r.sending == nil && len(r.waiting) > 0 {
		r.sending = &report{ID: uuid.NewString()}
		left := int64(maxSum)
		for k, n := range r.waiting {
			if len(r.sending.Counts) == maxRows || left == 0 {
				break
			}
			taken := min(n, left)
			r.sending.Counts = append(r.sending.Counts, row{k, taken})
			left -= taken
			if r.waiting[k] -= taken; taken == n {
				delete(r.waiting, k)
			}
		}
	}
	return r.sending != nil
}

// send sends the report. It returns nil too if the service refuses it for good.
func (r *reporter) send(ctx context.Context) error {
	body, err := json.Marshal(r.sending)
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

// run reports until ctx ends, and then once more.
func (r *reporter) run(ctx context.Context, environmentID func() string) {
	tick := time.NewTicker(reportInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			r.tryReport(ctx, environmentID())
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	r.tryReport(last, environmentID())
}

func (r *reporter) tryReport(ctx context.Context, environmentID string) {
	if environmentID == "" {
		return
	}
	if err := r.report(ctx, environmentID); err != nil {
		r.config.Log.Warn("the usage of flags is not reported; the next attempt reports it",
			"err", cmp.Or(context.Cause(ctx), err))
	}
}
