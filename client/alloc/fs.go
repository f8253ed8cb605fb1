package alloc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/structs"
)

// List lists a directory of the allocation, ordered by name. The path is relative
// to the allocation's directory; a leading slash means it too.
func (d Dir) List(path string) ([]*structs.AllocFileInfo, error) {
	f, err := d.open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, structs.Errorf(structs.CodeBadRequest, "list %q: %w", path, err)
	}
	out := make([]*structs.AllocFileInfo, 0, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // gone meanwhile
		}
		out = append(out, fileInfo(info))
	}
	slices.SortFunc(out, func(a, b *structs.AllocFileInfo) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// Stat describes one file of the allocation.
func (d Dir) Stat(path string) (*structs.AllocFileInfo, error) {
	f, err := d.open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	info, err := f.Stat()
	if err != nil {
		return nil, structs.Errorf(structs.CodeInternal, "stat %q: %w", path, err)
	}
	out := fileInfo(info)
	if info.Mode().IsRegular() {
		out.ContentType = contentType(f, info.Name())
	}
	return out, nil
}

func fileInfo(info fs.FileInfo) *structs.AllocFileInfo {
	return &structs.AllocFileInfo{
		Name: info.Name(), IsDir: info.IsDir(), Size: info.Size(), FileMode: info.Mode().String(), ModTime: info.ModTime(),
	}
}

// contentType guesses from the name, else from the first bytes.
func contentType(f *os.File, name string) string {
	if t := mime.TypeByExtension(filepath.Ext(name)); t != "" {
		return t
	}
	head := make([]byte, 512)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "application/octet-stream"
	}
	return http.DetectContentType(head[:n])
}

// open opens a file or directory of the allocation. Links are followed within the
// allocation's directory and never out of it; secrets directories are refused
// however they are reached; a pipe does not block.
func (d Dir) open(path string) (*os.File, error) {
	if d.path == "" {
		return nil, structs.Errorf(structs.CodeUnsupported, "files of %q: a simulated allocation has none", path)
	}
	rel := filepath.Clean(strings.TrimLeft(path, "/"))
	if path == "" || rel == "" {
		rel = "."
	}
	if !filepath.IsLocal(rel) {
		return nil, structs.Errorf(structs.CodeForbidden, "path %q: leads out of the allocation's directory", path)
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, structs.Errorf(structs.CodeNotFound, "the allocation's directory: %w", bare(err))
	}
	defer root.Close() //nolint:errcheck // only a directory
	f, err := root.OpenFile(rel, os.O_RDONLY|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, structs.Errorf(structs.CodeNotFound, "path %q: %w", path, bare(err))
	case err != nil:
		return nil, structs.Errorf(structs.CodeForbidden, "path %q: %w", path, bare(err))
	}
	if err := d.allowed(f, path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// allowed looks where the opened file really is, whatever links led there.
func (d Dir) allowed(f *os.File, path string) error {
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return structs.Errorf(structs.CodeInternal, "path %q: %w", path, err)
	}
	base, err := filepath.EvalSymlinks(d.path)
	if err != nil {
		return structs.Errorf(structs.CodeInternal, "path %q: %w", path, err)
	}
	rel, err := filepath.Rel(base, real)
	if err != nil || !filepath.IsLocal(rel) {
		return structs.Errorf(structs.CodeForbidden, "path %q: leads out of the allocation's directory", path)
	}
	parts := strings.Split(rel, string(filepath.Separator))
	if len(parts) >= 2 && parts[0] != sharedName && parts[1] == secretsName {
		return structs.Errorf(structs.CodeForbidden, "path %q: secrets are not shown", path)
	}
	return nil
}

// bare drops the path of a path error, which is inside the node's file system.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// ReadRequest specifies what of a file to read.
type ReadRequest struct {
	Path   string
	Offset int64
	// Limit in bytes; 0: none.
	Limit int64
	// FromEnd counts Offset backwards from the end.
	FromEnd bool
	// Follow goes on as the file grows, until it is deleted or ctx ends.
	Follow bool
}

const (
	frameSize  = 64 << 10
	followPoll = 200 * time.Millisecond
)

// File events of a followed file, as Nomad names them.
const (
	eventDeleted   = "file deleted"
	eventTruncated = "file truncated"
)

// Read sends a file in frames.
func (d Dir) Read(ctx context.Context, req ReadRequest, send func(*structs.StreamFrame) error) error {
	f, err := d.open(req.Path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read from
	info, err := f.Stat()
	if err != nil {
		return structs.Errorf(structs.CodeInternal, "read %q: %w", req.Path, err)
	}
	if !info.Mode().IsRegular() {
		return structs.Errorf(structs.CodeBadRequest, "read %q: is no regular file", req.Path)
	}
	if req.Offset < 0 || req.Limit < 0 {
		return structs.Errorf(structs.CodeBadRequest, "read %q: offset and limit must not be negative", req.Path)
	}
	r := fileReader{f: f, off: req.Offset, left: req.Limit, limited: req.Limit > 0, name: strings.TrimLeft(req.Path, "/"), send: send}
	if req.FromEnd {
		r.off = max(0, info.Size()-req.Offset)
	}
	for {
		more, err := r.toEnd(ctx)
		if err != nil || !more || !req.Follow {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(followPoll):
		}
		if gone, err := r.look(); gone || err != nil {
			return err
		}
	}
}

type fileReader struct {
	f       *os.File
	off     int64
	left    int64
	limited bool
	name    string
	send    func(*structs.StreamFrame) error
}

// toEnd sends what there is; more reports that the limit is not reached.
func (r *fileReader) toEnd(ctx context.Context) (more bool, err error) {
	buf := make([]byte, frameSize)
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		part := buf
		if r.limited {
			if r.left == 0 {
				return false, nil
			}
			part = buf[:min(r.left, frameSize)]
		}
		n, err := r.f.ReadAt(part, r.off)
		if n > 0 {
			if serr := r.send(&structs.StreamFrame{Offset: r.off, Data: part[:n], File: r.name}); serr != nil {
				return false, serr
			}
			r.off += int64(n)
			r.left -= int64(n)
		}
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, structs.Errorf(structs.CodeInternal, "read %q: %w", r.name, err)
		}
	}
}

// look finds out whether a followed file was deleted or cut.
func (r *fileReader) look() (gone bool, err error) {
	info, err := r.f.Stat()
	if err != nil {
		return false, structs.Errorf(structs.CodeInternal, "read %q: %w", r.name, err)
	}
	if links(info) == 0 {
		return true, r.send(&structs.StreamFrame{File: r.name, Offset: r.off, FileEvent: eventDeleted})
	}
	if info.Size() < r.off {
		r.off = 0
		return false, r.send(&structs.StreamFrame{File: r.name, FileEvent: eventTruncated})
	}
	return false, nil
}

// links is how many names a file has; 0: it was deleted.
func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // narrower on some machines
	}
	return 1
}
