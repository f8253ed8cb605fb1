package snapshot

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/structs"
)

// Format is the version of archives that are written, and the newest that is read.
const Format = 1

// The parts of an archive, in their order.
const (
	metaName  = "meta.json"
	stateName = "state.bin"
	sumsName  = "SHA256SUMS"
)

// Bounds of the small parts, in bytes: cluster configurations of thousands of servers fit.
const (
	maxMeta = 1 << 20 // bytes of the description in an archive
	maxSums = 4 << 10 // bytes of the checksums in an archive
)

// damaged is the hint of every error about an archive's content.
const damaged = "the file is damaged or torn; use another"

// sealStart is an empty gzip member up to its comment, sealEnd what follows that: the
// comment's end, an empty block, no checksum, no size.
var (
	sealStart = []byte("\x1f\x8b\x08\x10\x00\x00\x00\x00\x00\xffnomadish-sha256:")
	sealEnd   = []byte("\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00")
)

const sealSize = 26 + 2*sha256.Size + 11

// seal is what stands behind an archive whose content has a digest.
func seal(sum []byte) []byte {
	out := append(make([]byte, 0, sealSize), sealStart...)
	out = hex.AppendEncode(out, sum)
	return append(out, sealEnd...)
}

// Write writes an archive of a state, of which there must be meta.StateBytes.
func Write(to io.Writer, meta *structs.SnapshotMeta, state io.Reader) error {
	whole := sha256.New()
	buffered := bufio.NewWriterSize(io.MultiWriter(to, whole), 1<<20)
	zip, err := gzip.NewWriterLevel(buffered, gzip.BestSpeed)
	if err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	out := tar.NewWriter(zip)
	about := *meta
	about.Format = Format
	text, err := json.MarshalIndent(&about, "", "  ")
	if err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	var sums bytes.Buffer
	part := func(name string, size int64, from io.Reader) error {
		if err := out.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600, Format: tar.FormatGNU}); err != nil {
			return fmt.Errorf("write archive: %s: %w", name, err)
		}
		sum := sha256.New()
		if _, err := io.CopyN(io.MultiWriter(out, sum), from, size); err != nil {
			return fmt.Errorf("write archive: %s: %w", name, err)
		}
		fmt.Fprintf(&sums, "%s  %s\n", hex.EncodeToString(sum.Sum(nil)), name)
		return nil
	}
	if err := part(metaName, int64(len(text)), bytes.NewReader(text)); err != nil {
		return err
	}
	if err := part(stateName, meta.StateBytes, state); err != nil {
		return err
	}
	if err := part(sumsName, int64(sums.Len()), bytes.NewReader(bytes.Clone(sums.Bytes()))); err != nil {
		return err
	}
	for _, end := range []func() error{out.Close, zip.Close, buffered.Flush} {
		if err := end(); err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
	}
	if _, err := to.Write(seal(whole.Sum(nil))); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return nil
}

func bad(format string, args ...any) error {
	return structs.Errorf(structs.CodeBadRequest, "archive: "+format, args...).WithHint(damaged)
}

// Read checks an archive of size bytes from its first byte to its last, and returns what is
// in it. It changes nothing. The error states what is wrong, or is ctx's.
func Read(ctx context.Context, from io.ReaderAt, size int64) (*structs.SnapshotInfo, error) {
	info := &structs.SnapshotInfo{Bytes: size}
	if err := checkSeal(ctx, from, size, info); err != nil {
		return nil, err
	}
	a, err := open(from, size)
	if err != nil {
		return nil, err
	}
	if err := a.readMeta(info); err != nil {
		return nil, err
	}
	if err := a.readState(ctx, info); err != nil {
		return nil, err
	}
	if err := a.readEnd(); err != nil {
		return nil, err
	}
	return info, nil
}

// State returns the state in an archive that Read has found whole.
func State(from io.ReaderAt, size int64) (io.Reader, error) {
	a, err := open(from, size)
	if err != nil {
		return nil, err
	}
	if err := a.readMeta(&structs.SnapshotInfo{}); err != nil {
		return nil, err
	}
	if _, err := a.next(stateName); err != nil {
		return nil, err
	}
	return a.tar, nil
}

func checkSeal(ctx context.Context, from io.ReaderAt, size int64, info *structs.SnapshotInfo) error {
	begin := make([]byte, 4)
	if n, err := from.ReadAt(begin, 0); n < len(begin) && !errors.Is(err, io.EOF) {
		return fmt.Errorf("archive: %w", err)
	}
	if !bytes.HasPrefix(begin, sealStart[:3]) || size < sealSize {
		return structs.Errorf(structs.CodeBadRequest, "archive: this is no archive of a cluster's state").
			WithHint("`nomadish operator snapshot save FILE` writes one")
	}
	body, all := sha256.New(), sha256.New()
	if _, err := io.Copy(io.MultiWriter(body, all), reading{ctx, io.NewSectionReader(from, 0, size-sealSize)}); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	have := make([]byte, sealSize)
	if _, err := from.ReadAt(have, size-sealSize); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("archive: %w", err)
	}
	if !bytes.HasPrefix(have, sealStart) {
		return bad("the checksum at its end is missing: it is torn, or something else wrote it")
	}
	if !bytes.Equal(have, seal(body.Sum(nil))) {
		return bad("its SHA-256 is not the one that stands at its end")
	}
	_, _ = all.Write(have) // never fails
	info.Digest = hex.EncodeToString(all.Sum(nil))
	return nil
}

// reading ends with its context.
type reading struct {
	ctx context.Context // it lives as long as one call
	r   io.Reader
}

func (r reading) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// archive is one being read.
type archive struct {
	raw  *bufio.Reader
	zip  *gzip.Reader
	tar  *tar.Reader
	sums bytes.Buffer // as SHA256SUMS ought to be
}

func open(from io.ReaderAt, size int64) (*archive, error) {
	a := &archive{raw: bufio.NewReaderSize(io.NewSectionReader(from, 0, size-sealSize), 1<<20)}
	var err error
	if a.zip, err = gzip.NewReader(a.raw); err != nil {
		return nil, bad("%w", err)
	}
	a.zip.Multistream(false)
	a.tar = tar.NewReader(a.zip)
	return a, nil
}

// next goes on to a part, which must be the one that is named.
func (a *archive) next(name string) (size int64, err error) {
	h, err := a.tar.Next()
	switch {
	case errors.Is(err, io.EOF):
		return 0, bad("%s is missing", name)
	case err != nil:
		return 0, bad("where %s should be: %w", name, err)
	case h.Name != name || h.Typeflag != tar.TypeReg:
		return 0, bad("%q is where %s should be", h.Name, name)
	}
	return h.Size, nil
}

// part reads a part through f and notes its checksum.
func (a *archive) part(name string, limit int64, f func(size int64, r io.Reader) error) error {
	size, err := a.next(name)
	if err != nil {
		return err
	}
	if size > limit {
		return bad("%s has %d bytes; at most %d are allowed", name, size, limit)
	}
	sum := sha256.New()
	r := &counted{r: io.TeeReader(a.tar, sum)}
	if err := f(size, r); err != nil {
		return err
	}
	if r.n != size {
		return bad("%d bytes of %s's %d were read", r.n, name, size)
	}
	a.note(name, sum)
	return nil
}

func (a *archive) note(name string, sum hash.Hash) {
	fmt.Fprintf(&a.sums, "%s  %s\n", hex.EncodeToString(sum.Sum(nil)), name)
}

type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (a *archive) readMeta(info *structs.SnapshotInfo) error {
	return a.part(metaName, maxMeta, func(size int64, r io.Reader) error {
		text, err := io.ReadAll(r)
		if err != nil || int64(len(text)) != size {
			return bad("%s: it ends too early: %w", metaName, err)
		}
		var newer struct{ Format int } // whose other fields may be of other kinds
		if err := json.Unmarshal(text, &newer); err == nil && newer.Format > Format {
			return structs.Errorf(structs.CodeUnsupported, "archive: its format is %d, and this version reads up to %d", newer.Format, Format).
				WithHint("a newer version wrote it: use that, or upgrade the servers")
		}
		if err := json.Unmarshal(text, &info.Meta); err != nil {
			return bad("%s: %w", metaName, err)
		}
		switch m := &info.Meta; {
		case m.Format < 1:
			return bad("%s: there is no format %d", metaName, m.Format)
		case m.StateBytes < 0:
			return bad("%s: a state of %d bytes", metaName, m.StateBytes)
		}
		return nil
	})
}

func (a *archive) readState(ctx context.Context, info *structs.SnapshotInfo) error {
	return a.part(stateName, info.Meta.StateBytes, func(size int64, r io.Reader) error {
		if size != info.Meta.StateBytes {
			return bad("%s has %d bytes, but %s states %d", stateName, size, metaName, info.Meta.StateBytes)
		}
		at := map[string]int{}
		head, err := fsm.Read(reading{ctx, r}, func(table string, _ any, size int) error {
			i, known := at[table]
			if !known {
				i = len(info.Tables)
				at[table] = i
				info.Tables = append(info.Tables, structs.SnapshotTable{Name: table})
			}
			info.Tables[i].Rows++
			info.Tables[i].Bytes += int64(size)
			return nil
		})
		if ctx.Err() != nil {
			return fmt.Errorf("archive: %w", ctx.Err())
		}
		if err != nil {
			return structs.Errorf(structs.CodeBadRequest, "archive: %s: %w", stateName, err)
		}
		if head.Index > info.Meta.Index {
			return bad("%s is of index %d, but %s states %d", stateName, head.Index, metaName, info.Meta.Index)
		}
		info.StateIndex = head.Index
		return nil
	})
}

// readEnd checks the checksums of the parts, and that nothing follows.
func (a *archive) readEnd() error {
	want := bytes.Clone(a.sums.Bytes())
	var have []byte
	err := a.part(sumsName, maxSums, func(_ int64, r io.Reader) (err error) {
		have, err = io.ReadAll(r)
		return err
	})
	if err != nil {
		return err
	}
	if !bytes.Equal(have, want) {
		return bad("%s lists %q, but the parts are %q", sumsName, have, want)
	}
	if h, err := a.tar.Next(); !errors.Is(err, io.EOF) {
		if err != nil {
			return bad("behind %s: %w", sumsName, err)
		}
		return bad("%q follows %s", h.Name, sumsName)
	}
	rest, err := io.Copy(io.Discard, io.LimitReader(a.zip, maxSums))
	if err != nil || rest == maxSums {
		return bad("something follows its parts: %d bytes, %w", rest, err)
	}
	if _, err := a.raw.ReadByte(); !errors.Is(err, io.EOF) {
		return bad("something follows its end")
	}
	return nil
}

// Digest is the SHA-256 of all of a file, from its beginning.
func Digest(r io.ReadSeeker) ([]byte, int64, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, 0, fmt.Errorf("archive: %w", err)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, r)
	if err != nil {
		return nil, 0, fmt.Errorf("archive: %w", err)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, 0, fmt.Errorf("archive: %w", err)
	}
	return sum.Sum(nil), n, nil
}
