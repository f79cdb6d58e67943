package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// Ids may be in any case, as in the API. People's ids are not changed here, because Firebase has its own.
func TestCommandsTakeIDsInCapitals(t *testing.T) {
	var read cli
	parser, ids, times := newParser(&read), 0, 0
	err := kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		value, ok := node.(*kong.Value)
		if flag, isFlag := node.(*kong.Flag); isFlag {
			value, ok = flag.Value, true
		}
		switch {
		case !ok:
		case strings.Contains(value.Help, " id") && !strings.Contains(value.Help, "person") && !strings.Contains(value.Help, "jobs"):
			if ids++; value.Tag.Type != "id" {
				t.Errorf("%s is not read as an id", value.Summary())
			}
		case strings.Contains(value.Help, "RFC 3339") && value.Target.Type() == reflect.TypeFor[time.Time]():
			if times++; value.Tag.Type != "time" {
				t.Errorf("%s is not read as a time", value.Summary())
			}
		}
		return next(nil)
	})
	if err != nil || ids == 0 || times == 0 {
		t.Errorf("%d ids and %d times were found: %v", ids, times, err)
	}
	const id = "0198c5a0-e0b7-7d42-8c19-4d5e6f708192"
	if _, err := parser.Parse(
		[]string{"replay", "--tenant", strings.ToUpper(id), "--project", strings.ToUpper(id)},
	); err != nil {
		t.Fatal(err)
	}
	if read.Replay.Tenant != id || *read.Replay.Project != id {
		t.Errorf("replay is about %s and %s, want %s", read.Replay.Tenant, *read.Replay.Project, id)
	}
	read = cli{}
	if _, err := parser.Parse(
		[]string{"copy", "--accept-times-until", "2031-01-02t03:04:05.5z", "--from", "a", "--to", "b"},
	); err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2031, 1, 2, 3, 4, 5, 5e8, time.UTC); !read.Copy.AcceptTimesUntil.Equal(want) {
		t.Errorf("the time is read as %v, want %v", read.Copy.AcceptTimesUntil, want)
	}
	if _, err := parser.Parse(
		[]string{"copy", "--accept-times-until", "yesterday", "--from", "a", "--to", "b"},
	); err == nil {
		t.Error("yesterday is read as a time")
	}
}
