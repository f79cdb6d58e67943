package http_test

import (
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// Clients may have a base URL or a path that ends in a slash.
func TestSlashesAroundAPathAreIgnored(t *testing.T) {
	nodetest.Cases{
		"of calls": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for _, c := range [][2]string{
				{"GET", "/health"}, {"GET", "/api/v1/flags"}, {"GET", "/api/flags"}, {"GET", nodetest.FlagPath("k")}, {"GET", "/"},
				{"POST", nodetest.FlagPath("k", "/evaluate")}, {"POST", "/ofrep/v1/evaluate/flags/k"},
				{"POST", "/ofrep/v1/evaluate/flags"}, {"GET", "/docs"}, {"GET", "/docs/page.js"}, {"GET", "/openapi.json"},
				{"GET", "/problems/conflict"}, {"GET", "/reset-password"},
			} {
				var body any
				if c[0] == "POST" {
					body = `{}`
				}
				if strings.HasPrefix(c[1], "/ofrep") {
					body = `{"context":{}}`
				}
				want := string(me.Call(c[0], c[1], body).Want(200).Body)
				paths := []string{"/" + c[1], "///" + c[1]}
				if c[1] != "/" {
					paths = append(paths, c[1]+"/", "/"+c[1]+"/")
				}
				for _, path := range paths {
					got := string(me.Call(c[0], path, body).Want(200).Body)
					if c[1] != "/health" { // it contains the time
						nodetest.Same(t, "the answer to "+path, got, want)
					}
				}
			}
		},
		"of a call that is made again with its key": func(t *testing.T, me *nodetest.Client) {
			const flag = `{"key":"k","type":"boolean"}`
			first := me.Call("POST", "/api/v1/flags", flag, "Idempotency-Key", "1").Want(201)
			again := me.Call("POST", "//api/v1/flags/", flag, "Idempotency-Key", "1").Want(201)
			nodetest.Same(t, "the second answer", string(again.Body), string(first.Body))
			nodetest.Same(t, "whether it is replayed", again.Header.Get("Idempotent-Replayed"), "true")
		},
		"in a Link": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("a", nil)
			me.CreateFlag("b", nil)
			page := me.Call("GET", "//api/v1/flags/?limit=1", nil).Want(200)
			nodetest.Same(t, "the Link", page.Header.Get("Link"), `</api/v1/flags?limit=1&offset=1>; rel="next"`)
		},
		"an empty last part makes no call mean another change": func(t *testing.T, me *nodetest.Client) {
			_, operations := me.Document()
			for name := range operations {
				cut := strings.LastIndex(name, "/{")
				if strings.HasPrefix(name, "GET ") || cut < 0 || strings.Contains(name[cut+1:], "/") {
					continue
				}
				if _, other := operations[name[:cut]]; other && !strings.Contains(name, " /ofrep/") { // which changes nothing
					t.Errorf("%s without its last part is %s", name, name[:cut])
				}
			}
		},
	}.Run(t)
}
