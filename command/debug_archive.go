package command

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxDebugFile bounds one file that `operator debug` gathers, in bytes.
const maxDebugFile = 256 << 20

// debugFile is a file of bounded size. It has no other way to be written to than Write.
type debugFile struct {
	file *os.File
	left int // bytes
}

// Write implements io.Writer. It fails when the file is as large as it may be.
func (f *debugFile) Write(p []byte) (int, error) {
	whole := len(p) <= f.left
	n, err := f.file.Write(p[:min(len(p), f.left)])
	f.left -= n
	if err == nil && !whole {
		err = fmt.Errorf("it is larger than %d MiB; its beginning was kept", maxDebugFile>>20)
	}
	return n, err
}

// debugPlace is where files are gathered, and what is made of them.
type debugPlace struct {
	dir     string // of the files
	archive string // that is made of them; empty: the directory is it
	temp    string // removed at the end
}

// newDebugPlace makes a new directory: in output, if it is named, which is made too if it is not there, and else one that becomes an archive in the working directory.
func newDebugPlace(output, name string) (*debugPlace, error) {
	if output != "" {
		if err := os.MkdirAll(output, 0o700); err != nil { // what is gathered is for its owner alone
			return nil, fmt.Errorf("-output: %w", err)
		}
		dir := filepath.Join(output, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, fmt.Errorf("-output: %w", err)
		}
		return &debugPlace{dir: dir}, nil
	}
	archive := name + ".tar.gz"
	if _, err := os.Lstat(archive); err == nil {
		return nil, fmt.Errorf("%s: there is such a file already", archive)
	}
	temp, err := os.MkdirTemp("", "nomadish-debug-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the files: %w", err)
	}
	p := &debugPlace{dir: filepath.Join(temp, name), archive: archive, temp: temp}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		p.discard()
		return nil, fmt.Errorf("make a directory for the files: %w", err)
	}
	return p, nil
}

// discard removes what is not the result.
func (p *debugPlace) discard() {
	if p.temp != "" {
		_ = os.RemoveAll(p.temp)
	} else {
		_ = os.Remove(p.dir) // which fails unless it is empty
	}
}

// finish makes the archive, and returns its name and size; of a directory, what its files have together.
func (p *debugPlace) finish() (made string, size int64, err error) {
	if p.archive == "" {
		err := filepath.WalkDir(p.dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			about, err := d.Info()
			if err == nil {
				size += about.Size()
			}
			return err
		})
		return p.dir, size, err
	}
	part := p.archive + ".part"
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // of our own naming
	if err != nil {
		return "", 0, fmt.Errorf("write the archive: %w", err)
	}
	err = pack(file, p.dir)
	if err == nil {
		size, err = file.Seek(0, io.SeekCurrent)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = settle(part, p.archive)
	}
	if err != nil {
		_ = os.Remove(part)
		return "", 0, fmt.Errorf("write the archive: %w", err)
	}
	return p.archive, size, nil
}

// pack writes a directory as a compressed archive, under its own name.
func pack(to io.Writer, dir string) error {
	zip := gzip.NewWriter(to)
	out := tar.NewWriter(zip)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		about, err := d.Info()
		if err != nil {
			return err
		}
		head, err := tar.FileInfoHeader(about, "")
		if err != nil {
			return err
		}
		below, err := filepath.Rel(filepath.Dir(dir), path)
		if err != nil {
			return err
		}
		head.Name = filepath.ToSlash(below)
		head.Uid, head.Gid, head.Uname, head.Gname = 0, 0, "", ""
		if d.IsDir() {
			head.Name += "/"
			return out.WriteHeader(head)
		}
		if err := out.WriteHeader(head); err != nil {
			return err
		}
		file, err := os.Open(path) // of our own making
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // read only
		_, err = io.Copy(out, file)
		return err
	})
	if err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return zip.Close()
}

// fileName makes a name of a cluster one of a file, which cannot lead anywhere else.
func fileName(name string) string {
	out := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, name)
	if out = strings.TrimLeft(out, "."); out == "" {
		out = "_"
	}
	return out[:min(len(out), 100)]
}
