package http_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
)

const devicesPath = inboxPath + "/device-tokens"

func TestDeviceTokens(t *testing.T) {
	nodetest.Cases{
		"one is registered, refreshed, moved and removed": func(t *testing.T, me *nodetest.Client) {
			token := "tok:" + uuid.NewString()
			phone := func(c *nodetest.Client, name string) *nodetest.Answer {
				return c.Call("POST", devicesPath, map[string]any{"deviceToken": token, "deviceName": name, "deviceType": "ios"})
			}
			listed := func(c *nodetest.Client) []any { return titlesOf(c.Call("GET", devicesPath, nil).Want(200).List()) }
			me, other := me.Join("viewer"), me.Join("viewer")
			first := phone(me, "mine").Want(201)
			nodetest.Members(t, "a device", first.Object(), "deviceToken", "deviceName", "deviceType", "createdAt", "lastSeenAt")
			nodetest.Same(t, "where it is", first.Header.Get("Location"), devicesPath+"/"+url.PathEscape(token))
			refreshed := phone(me, "renamed").Want(200).Object()
			nodetest.Same(t, "when it was made", refreshed["createdAt"], first.Object()["createdAt"])
			nodetest.Same(t, "mine", listed(me), []string{"renamed"})
			phone(other, "theirs").Want(201)
			nodetest.Same(t, "of whom it is", []any{listed(me), listed(other)}, []any{[]any{}, []string{"theirs"}})
			me.Call("DELETE", devicesPath+"/"+token, nil).Refused(404)
			other.Call("DELETE", devicesPath+"/"+strings.Replace(token, ":", "%3A", 1), nil).Want(204)
			other.Call("DELETE", devicesPath+"/"+token, nil).Refused(404)
			for body, fields := range map[string][]string{
				`{}`: {"deviceToken", "deviceType"},
				`{"deviceToken":"a b","deviceType":"tv"}`:                                                {"deviceToken", "deviceType"},
				`{"deviceToken":"x","deviceType":"ios","deviceName":"` + strings.Repeat("n", 201) + `"}`: {"deviceName"},
			} {
				me.Call("POST", devicesPath, body).Refused(422, fields...)
			}
			for i := range 21 {
				me.Call("POST", devicesPath, map[string]any{"deviceToken": fmt.Sprint(token, i), "deviceName": fmt.Sprint(i), "deviceType": "web"}).
					Want(201)
			}
			list := listed(me)
			nodetest.Same(t, "the last twenty", []any{len(list), list[0], list[19]}, []any{20, "1", "20"})
			nodetest.Same(t, "a page of them", titlesOf(me.Call("GET", devicesPath+"?limit=2&offset=19", nil).Want(200).List()),
				[]string{"20"})
		},
		"a token is the one that its path names, however it is escaped": func(t *testing.T, me *nodetest.Client) {
			register := func(token string) {
				me.Call("POST", devicesPath, map[string]any{"deviceToken": token, "deviceType": "web"}).Want(201)
			}
			prefix := uuid.NewString()
			register(prefix + "aA:b@c") // which another token is once its own % are taken for escapes
			for _, path := range []string{"a%2541:b@c", "a%2541%3Ab@c", "a%2541:b%40c", "a%2541%3Ab%40c"} {
				register(prefix + "a%41:b@c")
				me.Call("DELETE", devicesPath+"/"+prefix+path, nil).Want(204)
				nodetest.Same(t, "what is left", nodetest.Column(me.Call("GET", devicesPath, nil).Want(200).List(), "deviceToken"),
					[]string{prefix + "aA:b@c"})
			}
			me.Call("DELETE", devicesPath+"/"+prefix+"aA%3Ab%40c", nil).Want(204)
			register(prefix + "100%/x")
			me.Call("DELETE", devicesPath+"/"+prefix+"100%25%2Fx", nil).Want(204)
		},
	}.Run(t)
}

func titlesOf(devices []map[string]any) []any { return nodetest.Column(devices, "deviceName") }
