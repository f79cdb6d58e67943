package flagd

import (
	"bytes"
	"testing"

	"flagledger/events"
)

// Messages count for their owner while they are the newest or a slow stream still sends them.
func TestMessagesInUseAreLimited(t *testing.T) {
	d := documents{by: map[documentKey]*document{}, bytes: map[string]int{}}
	const most = maxCached / maxMessage
	message := func(n int) *madeDocument {
		return &madeDocument{message: bytes.Repeat([]byte{byte(n)}, maxMessage)}
	}
	newest, other := d.open(documentKey{}, "owner"), d.open(documentKey{dialect: 1}, "other owner")
	var sent []*madeDocument
	for n := range most {
		if !d.add(newest, message(n), events.Position{}) {
			t.Fatalf("message %d is refused", n)
		}
		sent = append(sent, d.use(newest, events.Position{}, events.Position{}))
	}
	if d.add(newest, message(most), events.Position{}) {
		t.Error("there is no limit")
	}
	if !d.add(newest, message(most-1), events.Position{}) || !d.add(other, message(0), events.Position{}) {
		t.Error("the same message or one of another owner is refused")
	}
	d.release(sent[0])
	if !d.add(newest, message(most), events.Position{}) {
		t.Error("a message that is no longer sent counts")
	}
	for _, made := range sent[1:] {
		d.release(made)
	}
	d.close(newest)
	d.close(other)
	if !d.add(newest, message(0), events.Position{}) || len(d.bytes) > 0 || len(d.by) > 0 {
		t.Errorf("without a stream %v are in use", d.bytes)
	}
}
