package main

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
)

const (
	floodRounds  = 10 // of each kind, by turns
	floodCallers = 64 // who sign in at once
)

// BenchmarkEvaluateUnderSignInFlood is evaluation over HTTP, by turns alone and beside as many sign-ins as come through: hashing their passwords
// must not starve it. p99-ratio is to be at most 2.
func BenchmarkEvaluateUnderSignInFlood(b *testing.B) {
	s := newService(b)
	me := s.signUp(address())
	me.enabled("k", nil)
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * floodCallers}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	post := func(ctx context.Context, path string, body []byte) (status int, err error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+me.token)
		r.Header.Set("X-Tenant-ID", me.tenant)
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
					body, err := json.Marshal(map[string]string{"email": address(), "password": password})
					if err != nil {
						b.Error(err)
					}
					if status, err := post(ctx, "/auth/signin", body); err == nil && status == http.StatusUnauthorized {
						signIns.Add(1)
					}
				}
			})
		}
		s.eventually("sign-ins are answered", func() bool { return signIns.Load() > before })
		return func() {
			cancel()
			all.Wait()
		}
	}
	evaluate := func(into *samples, n int) {
		path, body := flagPath("k", "/evaluate"), []byte(`{"targetingKey":"user-42"}`)
		for range n {
			began := time.Now()
			status, err := post(b.Context(), path, body)
			if err != nil || status != http.StatusOK {
				b.Fatalf("%d, %v", status, err)
			}
			into.add(time.Since(began))
		}
	}
	var alone, beside samples
	each := max(b.N/floodRounds, 1)
	evaluate(&samples{}, 100)
	b.ResetTimer()
	for range floodRounds {
		evaluate(&alone, each)
		stop := flood()
		evaluate(&beside, each)
		stop()
	}
	b.StopTimer()
	for what, s := range map[string]*samples{"alone": &alone, "beside": &beside} {
		b.ReportMetric(float64(s.percentile(50).Microseconds())/1000, "p50-ms-"+what)
		b.ReportMetric(float64(s.percentile(99).Microseconds())/1000, "p99-ms-"+what)
	}
	b.ReportMetric(float64(beside.percentile(99))/float64(alone.percentile(99)), "p99-ratio")
	b.ReportMetric(float64(signIns.Load())/b.Elapsed().Seconds(), "sign-ins/s")
}
