// Package pushtest is a small FCM for tests.
package pushtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Server accepts messages as FCM does, at http://.../v1/projects/ID/messages:send.
type Server struct {
	Endpoint string // for option.WithEndpoint

	mu     sync.Mutex
	taken  []Message
	answer func(attempt int, m Message) Answer
	tried  map[string]int
}

// Message is a message to a device.
type Message struct {
	Token        string
	Notification struct{ Title, Body string }
	Data         map[string]string
	Android      struct{ Notification struct{ Tag string } }
	APNS         struct{ Headers map[string]string }
	Webpush      struct{ Notification struct{ Tag string } }
}

// Answer describes the response to a message. The zero Answer accepts it.
type Answer struct {
	Status int             // an error status
	Code   string          // FCM's error code, such as UNREGISTERED
	Body   string          // with Status, a body in place of a readable response
	Drop   bool            // the connection is closed without an answer
	Hang   <-chan struct{} // no response until it is closed or the caller disconnects
	Lost   bool            // the message is accepted, but its response hangs
}

// New starts a server, which stops with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{tried: map[string]int{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.Endpoint = server.URL + "/v1"
	return s
}

// Answer sets how later messages are answered. attempt counts the messages to a token, from 1.
func (s *Server) Answer(answer func(attempt int, m Message) Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// Taken returns the accepted messages in order.
func (s *Server) Taken() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message(nil), s.taken...)
}

// Titles returns the titles of the messages that a device has received, in order.
func (s *Server) Titles(token string) (titles []string) {
	for _, m := range s.Taken() {
		if m.Token == token {
			titles = append(titles, m.Notification.Title)
		}
	}
	return titles
}

// Tried counts the messages to a device, accepted or not.
func (s *Server) Tried(token string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tried[token]
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct{ Message Message }
	if !strings.HasPrefix(r.URL.Path, "/v1/projects/") || !strings.HasSuffix(r.URL.Path, "/messages:send") ||
		json.NewDecoder(r.Body).Decode(&body) != nil {
		http.Error(w, "not a message", http.StatusNotFound)
		return
	}
	s.mu.Lock()
	s.tried[body.Message.Token]++
	attempt, decide := s.tried[body.Message.Token], s.answer
	s.mu.Unlock()
	var a Answer
	if decide != nil {
		a = decide(attempt, body.Message)
	}
	if a.Drop {
		panic(http.ErrAbortHandler)
	}
	if a.Lost {
		s.take(body.Message)
		<-r.Context().Done()
		return
	}
	if a.Hang != nil {
		select {
		case <-a.Hang:
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case a.Body != "":
		if a.Status != 0 {
			w.WriteHeader(a.Status)
		}
		_, _ = w.Write([]byte(a.Body))
	case a.Status != 0:
		w.WriteHeader(a.Status)
		fmt.Fprintf(w,
			`{"error":{"code":%d,"message":"refused %s","status":%q,"details":[{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":%q}]}}`,
			a.Status, body.Message.Token, a.Code, a.Code)
	default:
		fmt.Fprintf(w, `{"name":"projects/test/messages/%d"}`, s.take(body.Message))
	}
}

func (s *Server) take(m Message) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = append(s.taken, m)
	return len(s.taken)
}
