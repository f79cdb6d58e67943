package http_test

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/http/evaluation"
)

// streamURL returns the path and the query of the stream in OFREP's bulk response.
func streamURL(c *nodetest.Client, headers ...string) string {
	c.Service.T.Helper()
	streams := callOFREP(c, "", `{}`, headers...).Want(200).Object()["eventStreams"].([]any)
	if len(streams) != 1 {
		c.Service.T.Fatalf("the answer tells of the streams %v", streams)
	}
	stream := streams[0].(map[string]any)
	nodetest.Members(c.Service.T, "a stream", stream, "type", "url")
	path, ok := strings.CutPrefix(stream["url"].(string), c.Service.Config.PublicURL)
	if !ok || stream["type"] != "sse" || !strings.HasPrefix(path, streamPath+"?ticket=") {
		c.Service.T.Fatalf("the answer tells of %v", stream)
	}
	return path
}

func TestStreamURL(t *testing.T) {
	nodetest.Cases{
		"it opens the stream without a header": func(_ *testing.T, me *nodetest.Client) {
			machine := me.Machine("flags:evaluate")
			other := me.NewTenant("other")
			browser := me.Service.Anonymous()
			var streams []*listening
			for _, url := range []string{streamURL(me), streamURL(machine), streamURL(me.Join("viewer"), "X-Environment", "production")} {
				l := openStream(browser, url)
				l.next()
				streams = append(streams, l)
			}
			development := openStream(browser, streamURL(me, "X-Environment", "development"))
			development.next()
			theirs := openStream(browser, streamURL(other), "X-Tenant-ID", me.Tenant, "X-Environment", "none")
			theirs.next()
			me.CreateFlag("k", nil)
			enable(me, "k", "production")
			enable(me, "k", "development")
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			other.CreateFlag("theirs", nil)
			for _, l := range streams {
				l.hears("k 1")
				l.hears("k 2")
				l.hears("k 4 deleted")
			}
			for _, flags := range []string{"k 1", "k 3", "k 4 deleted"} {
				development.hears(flags)
			}
			theirs.hears("theirs 1")
			resumed := openStream(browser, streamURL(me), "Last-Event-ID", streams[0].last)
			nodetest.Same(streams[0].t, "who missed nothing hears", resumed.next().Data.Type, "connected")
		},
		"it stays the same with its token, and so does the tag of the answer": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			a := callOFREP(me, "", `{}`).Want(200)
			tag := a.Header.Get("ETag")
			nodetest.Same(t, "the answer", string(callOFREP(me, "", `{}`, "If-None-Match", `"other"`).Want(200).Body),
				string(a.Body))
			callOFREP(me, "", `{}`, "If-None-Match", tag).Want(304)
			for what, other := range map[string]*nodetest.Answer{
				"another environment": callOFREP(me, "", `{}`, "X-Environment", "development"),
				"another person":      callOFREP(me.Join("viewer"), "", `{}`),
				"a machine":           callOFREP(me.Machine("flags:evaluate"), "", `{}`),
			} {
				if other.Want(200).Header.Get("ETag") == tag {
					t.Errorf("%s has the same answer", what)
				}
			}
		},
		"it opens nothing but the stream": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			query := strings.TrimPrefix(streamURL(me), streamPath)
			sealed := strings.TrimPrefix(query, "?ticket=")
			nobody := me.Service.Anonymous()
			for _, path := range []string{"/api/v1/flags", nodetest.FlagPath("k"), "/api/v1/tenants", "/api/v1/projects"} {
				nobody.Call("GET", path+query, nil).Refused(401)
				nobody.Call("GET", path, nil, "Authorization", "Bearer "+sealed).Refused(401)
			}
			nobody.Call("POST", ofrepPath+query, `{"context":{}}`).Want(401)
			nobody.Call("GET", streamPath, nil, "Authorization", "Bearer "+sealed).Refused(401)
			nobody.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": sealed}).Refused(401)
		},
		"no other token opens it": func(_ *testing.T, me *nodetest.Client) {
			sealed := strings.TrimPrefix(streamURL(me), streamPath+"?ticket=")
			parts := strings.Split(sealed, ".")
			others := strings.Split(strings.TrimPrefix(streamURL(me.NewTenant("other")), streamPath+"?ticket="), ".")
			for _, token := range []string{
				me.Token, me.Machine("flags:evaluate").Token, "x", sealed + "x", sealed[:len(sealed)-1],
				parts[0] + "." + others[1] + "." + parts[2], parts[0] + "." + parts[1] + ".",
			} {
				me.Call("GET", streamPath+"?ticket="+token, nil).Refused(401)
			}
		},
		"it ends with its session": func(_ *testing.T, me *nodetest.Client) {
			person := me.Service.SignUp(nodetest.Address())
			url, browser := streamURL(person), me.Service.Anonymous()
			l := openStream(browser, url)
			l.next()
			person.Call("POST", "/api/v1/auth/logout", nil).Want(200)
			l.ends()
			browser.Call("GET", url, nil).Refused(401)
		},
		"it ends for who is no member any more": func(_ *testing.T, me *nodetest.Client) {
			member := me.Join("viewer")
			url, browser := streamURL(member), me.Service.Anonymous()
			l := openStream(browser, url)
			l.next()
			me.Call("DELETE", usersPath(me, member.UserID), nil).Want(204)
			l.ends()
			browser.Call("GET", url, nil).Refused(403)
		},
		"it ends with its machine": func(_ *testing.T, me *nodetest.Client) {
			machine := me.Machine("flags:evaluate")
			url, browser := streamURL(machine), me.Service.Anonymous()
			l := openStream(browser, url)
			l.next()
			me.Call("DELETE", "/api/v1/oauth/clients/"+machine.UserID, nil).Want(204)
			l.ends()
			browser.Call("GET", url, nil).Refused(401)
		},
		"it ends with its environment and its tenant": func(_ *testing.T, me *nodetest.Client) {
			url, browser := streamURL(me, "X-Environment", "development"), me.Service.Anonymous()
			l := openStream(browser, url)
			l.next()
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant+"/environments/development", nil).Want(204)
			l.ends()
			browser.Call("GET", url, nil).Refused(404)
			url = streamURL(me)
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant, nil).Want(204)
			browser.Call("GET", url, nil).Refused(403)
		},
	}.Run(t)
}

func TestStreamURLsAreTheSameOnAllNodesAndNotLogged(t *testing.T) {
	t.Parallel()
	book := &nodetest.LogBook{}
	var later atomic.Int64
	c := settings.Config{
		Environment: "development", Streams: evaluation.DefaultStreamLimits(),
		Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
	}
	s := nodetest.Start(t, nodetest.Database(t), c,
		slog.New(slog.NewJSONHandler(book, &slog.HandlerOptions{Level: slog.LevelDebug})))
	me := s.SignUp("me@example.com")
	there := *me
	there.Service = s.SecondNode()
	url := streamURL(me)
	nodetest.Same(t, "the URL on another node", streamURL(&there), url)
	browser := there.Service.Anonymous()
	l := openStream(browser, url)
	l.next()
	me.CreateFlag("k", nil)
	l.hears("k 1")
	s.Anonymous().Call("HEAD", url, nil).Want(200)
	s.Anonymous().Call("GET", url+"x", nil).Refused(401)
	s.Anonymous().Call("GET", "/nowhere"+strings.TrimPrefix(url, streamPath), nil).Refused(404)
	later.Store(int64(time.Hour))
	s.Anonymous().Call("GET", url, nil).Refused(401)
	if text := book.String(); !strings.Contains(text, streamPath) || strings.Contains(text, strings.Split(url, ".")[1]) {
		t.Error("the log shows tickets, or no streams")
	}
}
