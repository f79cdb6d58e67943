package http_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
)

const (
	floodRounds  = 10 // of each kind, in turn
	floodCallers = 64 // concurrent sign-ins
)

// BenchmarkEvaluateUnderSignInFlood evaluates over HTTP, alone and beside a flood of sign-ins in turn. Password hashing
// must not starve evaluation: p99-ratio should be at most 2.
func BenchmarkEvaluateUnderSignInFlood(b *testing.B) {
	s := nodetest.New(b)
	me := s.SignUp(nodetest.Address())
	me.CreateEnabledFlag("k", nil)
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * floodCallers}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	post := func(ctx context.Context, path string, body []byte) (status int, err error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+me.Token)
		r.Header.Set("X-Tenant-ID", me.Tenant)
		answer, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode, err
	}
	var signIns atomic.Int64
	flood := func() (stop func()) {
		ctx, cancel := context.WithCancel(b.Context())
		before := signIns.Load()
		var all sync.WaitGroup
		for range floodCallers {
			all.Go(func() {
				for ctx.Err() == nil {
					body, err := json.Marshal(map[string]string{"email": nodetest.Address(), "password": nodetest.Password})
					if err != nil {
						b.Error(err)
					}
					if status, err := post(ctx, "/auth/signin", body); err == nil && status == http.StatusUnauthorized {
						signIns.Add(1)
					}
				}
			})
		}
		s.Eventually("sign-ins are answered", func() bool { return signIns.Load() > before })
		return func() {
			cancel()
			all.Wait()
		}
	}
	evaluate := func(into *nodetest.Samples, n int) {
		path, body := nodetest.FlagPath("k", "/evaluate"), []byte(`{"targetingKey":"user-42"}`)
		for range n {
			began := time.Now()
			status, err := post(b.Context(), path, body)
			if err != nil || status != http.StatusOK {
				b.Fatalf("%d, %v", status, err)
			}
			into.Add(time.Since(began))
		}
	}
	var alone, beside nodetest.Samples
	each := max(b.N/floodRounds, 1)
	evaluate(&nodetest.Samples{}, 100)
	b.ResetTimer()
	for range floodRounds {
		evaluate(&alone, each)
		stop := flood()
		evaluate(&beside, each)
		stop()
	}
	b.StopTimer()
	for what, s := range map[string]*nodetest.Samples{"alone": &alone, "beside": &beside} {
		b.ReportMetric(float64(s.Percentile(50).Microseconds())/1000, "p50-ms-"+what)
		b.ReportMetric(float64(s.Percentile(99).Microseconds())/1000, "p99-ms-"+what)
	}
	b.ReportMetric(float64(beside.Percentile(99))/float64(alone.Percentile(99)), "p99-ratio")
	b.ReportMetric(float64(signIns.Load())/b.Elapsed().Seconds(), "sign-ins/s")
}
