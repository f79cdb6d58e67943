package nodetest

import (
	"bytes"
	"log/slog"
	"sync"
)

// LogBook keeps what is logged.
type LogBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *LogBook) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

// Logger writes JSON to the book, of all levels.
func (b *LogBook) Logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// String is all that was logged so far.
func (b *LogBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
