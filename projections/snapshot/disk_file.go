package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"flagledger/projections/snapshot/evaluation"
)

// fileVersion is the version of the file: of how it is written, and of what is made of facts. A file of another version
// is ignored.
const fileVersion = 17

// The errors of a file that cannot be used.
var (
	errDamaged      = errors.New("it is damaged")
	errOtherVersion = errors.New("it is of another version of the service")
	errOtherLog     = errors.New("it is of another log than the event store holds, or of events that are no longer in it")
)

// A file is its first line, blocks of records, and an empty block as its end. Each block has its length and a checksum
// before it, four bytes each. The first block says what the file is of.
var (
	firstLine    = fmt.Sprintf("flagledger snapshot v%d\n", fileVersion)
	anyFirstLine = regexp.MustCompile(`^flagledger snapshot v[0-9]+\n`)
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
)

const (
	blockBytes = 1 << 20 // the size from which a block takes no more records
	syncBytes  = 8 << 20 // written between two syncs, so that other writers to the disk do not wait long
)

// checksum also covers the block's number, so that no block can be missing or stand twice.
func checksum(number uint32, block []byte) uint32 {
	return crc32.Update(crc32.Checksum(binary.LittleEndian.AppendUint32(nil, number), castagnoli), castagnoli, block)
}

// frame is what stands before a block.
func frame(number uint32, block []byte) []byte {
	length := binary.LittleEndian.AppendUint32(nil, uint32(len(block)))
	return binary.LittleEndian.AppendUint32(length, checksum(number, block))
}

// fileWriter writes blocks.
type fileWriter struct {
	file     *os.File
	blocks   uint32
	written  int64
	unsynced int
}

func (w *fileWriter) writeBlock(data []byte) error {
	before := frame(w.blocks, data)
	w.blocks++
	for _, part := range [][]byte{before, data} {
		n, err := w.file.Write(part)
		w.written += int64(n)
		w.unsynced += n
		if err != nil {
			return err
		}
	}
	if w.unsynced < syncBytes {
		return nil
	}
	w.unsynced = 0
	return w.file.Sync()
}

// write replaces the file at path by contents, whole or not at all, and returns its size. Only its owner may read it.
//
// pause is called after each block with the time that the block took. Its error ends the writing.
func (all *contents) write(path string, pause func(time.Duration) error) (size int64, err error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+temporary) // mode 0600
	if err != nil {
		return 0, err
	}
	defer func() {
		_ = file.Close()
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	if _, err := file.WriteString(firstLine); err != nil {
		return 0, err
	}
	w := &fileWriter{file: file, written: int64(len(firstLine))}
	var block bytes.Buffer
	encoder := encoding.NewEncoder(&block)
	flush := func() error {
		err := w.writeBlock(block.Bytes())
		block.Reset()
		return err
	}
	if err := errors.Join(encoder.Encode(all.header), flush()); err != nil {
		return 0, err
	}
	began := time.Now()
	for r := range all.records() {
		if err := encoder.Encode(r); err != nil {
			return 0, err
		}
		if block.Len() < blockBytes {
			continue
		}
		if err := flush(); err != nil {
			return 0, err
		}
		if err := pause(time.Since(began)); err != nil {
			return 0, err
		}
		began = time.Now()
	}
	if block.Len() > 0 {
		if err := flush(); err != nil {
			return 0, err
		}
	}
	if err := flush(); err != nil { // the end
		return 0, err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return 0, err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return 0, err
	}
	return w.written, syncFolder(filepath.Dir(path))
}

// temporary is how the names of files that are being written end.
const temporary = ".new-*"

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Saved is what was read from a file.
type Saved struct {
	header
	state *Snapshot
	size  int64
}

// ReadSaved reads the file at path. It returns an error where a snapshot cannot begin with it.
func ReadSaved(ctx context.Context, path string) (*Saved, error) {
	return readFile(ctx, path, func(header) error { return nil })
}

// readFile reads the file at path, if that is what is wanted once it is known what it is of. The error is that of
// os.Open or wanted, errDamaged or errOtherVersion.
func readFile(ctx context.Context, path string, wanted func(header) error) (*Saved, error) {
	from, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	info, err := from.Stat()
	if err != nil {
		return nil, err
	}
	f, err := startFile(from, info.Size())
	if err != nil {
		return nil, err
	}
	if err := wanted(f.header); err != nil {
		return nil, err
	}
	return f.read(ctx)
}

// file is a snapshot on disk that is being read.
type file struct {
	header
	in     *bufio.Reader
	size   int64
	left   int64 // to be read
	blocks uint32
}

// startFile reads what a file of a size is of.
func startFile(from io.Reader, size int64) (*file, error) {
	f := &file{in: bufio.NewReader(from), size: size, left: size}
	start, _ := f.in.Peek(len(firstLine) + 10)
	if found := anyFirstLine.Find(start); found == nil {
		return nil, errDamaged
	} else if string(found) != firstLine {
		return nil, errOtherVersion
	}
	n, _ := f.in.Discard(len(firstLine))
	f.left -= int64(n)
	block, err := f.nextBlock()
	if err != nil {
		return nil, err
	}
	if decoding.Unmarshal(block, &f.header) != nil {
		return nil, errDamaged
	}
	return f, nil
}

// nextBlock reads the next block; it is empty at the end.
func (f *file) nextBlock() ([]byte, error) {
	var before [8]byte
	if _, err := io.ReadFull(f.in, before[:]); err != nil {
		return nil, asDamaged(err)
	}
	length := int64(binary.LittleEndian.Uint32(before[:4]))
	if f.left -= int64(len(before)) + length; f.left < 0 {
		return nil, errDamaged
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(f.in, data); err != nil {
		return nil, asDamaged(err)
	}
	if checksum(f.blocks, data) != binary.LittleEndian.Uint32(before[4:]) {
		return nil, errDamaged
	}
	f.blocks++
	return data, nil
}

// asDamaged keeps errors of the disk.
func asDamaged(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errDamaged
	}
	return err
}

// read reads the rest of a file into a new snapshot, on all cores.
func (f *file) read(ctx context.Context) (*Saved, error) {
	s := New(Options{})
	collected := &savedDependencies{
		segments: map[*Tenant][]*evaluation.Segment{},
		deleted:  map[*Tenant][]*evaluation.Flag{},
	}
	workers, ctx := errgroup.WithContext(ctx)
	blocks := make(chan []byte)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() error {
			for block := range blocks {
				for len(block) > 0 {
					var r record
					var err error
					if block, err = decoding.UnmarshalFirst(block, &r); err != nil || s.add(r, collected) != nil {
						return errDamaged
					}
				}
			}
			return nil
		})
	}
	workers.Go(func() error {
		defer close(blocks)
		for {
			block, err := f.nextBlock()
			switch {
			case err != nil:
				return err
			case len(block) == 0 && f.left > 0:
				return errDamaged
			case len(block) == 0:
				return nil
			}
			select {
			case blocks <- block:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	if err := workers.Wait(); err != nil {
		return nil, err
	}
	collected.show()
	return &Saved{f.header, s, f.size}, nil
}
