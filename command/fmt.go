package command

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/nomadish/nomadish/command/jobspec/hclfile"
	"github.com/nomadish/nomadish/command/ui"
)

// formatter is the options of fmt and what it has found.
type formatter struct {
	check, list, write, recursive bool

	differ bool // a file was not in the canonical style
	failed bool // a file could not be read, formatted or written
}

func fmtCommand() spec {
	return spec{
		synopsis: "Rewrite job files and agent configuration in the canonical style",
		usage:    "[PATH|-]…", example: "-check -recursive jobs", local: true,
		details: "PATH is a file whose name ends in .nomad or .hcl, or a directory, of which all such files are formatted. The default is\n" +
			"the current directory. Only white space is changed. \"-\" formats standard input and writes the result to standard\n" +
			"output. Exits 1 if a file could not be formatted, and with -check also if a file is not in the canonical style.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var f formatter
			fs.BoolVar(&f.check, "check", false, "only check: exit 1 if a file is not in the canonical style; nothing is written")
			fs.BoolVar(&f.list, "list", true, "print the names of the files that are not in the canonical style")
			fs.BoolVar(&f.write, "write", true, "overwrite the files; with -write=false -list=false the result is printed")
			fs.BoolVar(&f.recursive, "recursive", false, "also the files in subdirectories")
			return func(ctx context.Context, e *env, args []string) int { return f.run(ctx, e, args) }
		},
	}
}

func (f *formatter) run(ctx context.Context, e *env, args []string) int {
	switch {
	case len(args) == 1 && args[0] == "-":
		f.stdin(e)
	case slices.Contains(args, "-"):
		return e.usage("- is standard input, and cannot be given with other paths")
	case len(args) == 0:
		args = []string{"."}
		fallthrough
	default:
		for _, path := range args {
			f.path(ctx, e, path)
		}
	}
	if f.failed || ctx.Err() != nil || f.check && f.differ {
		return exitFailed
	}
	return exitDone
}

func (f *formatter) fail(e *env, err error) {
	f.failed = true
	e.fail(err)
}

func (f *formatter) stdin(e *env) {
	const name = "<stdin>"
	src, err := readHCL(name, e.in)
	if err != nil {
		f.fail(e, err)
		return
	}
	out, problems := hclfile.Format(name, src, hclfile.Limits{FileBytes: maxJobFile})
	if len(problems) > 0 {
		f.fail(e, problems)
		return
	}
	f.differ = !bytes.Equal(src, out)
	if !f.check {
		f.print(e, out)
	}
}

// print prints a formatted file as it is: it is the user's own.
func (f *formatter) print(e *env, text []byte) {
	if ui.IsTerminal(e.out) {
		e.printf("%s", ui.Lines(text))
		return
	}
	if _, err := ui.Raw(e.out).Write(text); err != nil {
		f.fail(e, err)
	}
}

// path formats what the user names.
func (f *formatter) path(ctx context.Context, e *env, path string) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		f.fail(e, err)
	case info.IsDir():
		f.dir(ctx, e, path)
	case !formattable(path):
		f.fail(e, fmt.Errorf("%s: only files whose names end in .nomad or .hcl are formatted", path))
	default:
		f.file(e, path)
	}
}

// dir formats the files of a directory by their names. Hidden ones and those of editors are left alone, and a link to a
// directory is not followed.
func (f *formatter) dir(ctx context.Context, e *env, path string) {
	entries, err := os.ReadDir(path)
	if err != nil {
		f.fail(e, err)
		return
	}
	for _, entry := range entries {
		name := filepath.Join(path, entry.Name())
		switch hidden := strings.HasPrefix(entry.Name(), ".") || strings.HasPrefix(entry.Name(), "#"); {
		case ctx.Err() != nil:
			return
		case hidden:
		case entry.IsDir():
			if f.recursive {
				f.dir(ctx, e, name)
			}
		case formattable(name):
			if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
				continue // such as a link to a directory
			}
			f.file(e, name)
		}
	}
}

// formattable reports whether a file's name is one of a job file or a configuration in HCL.
func formattable(path string) bool {
	ext := filepath.Ext(path)
	return ext == ".hcl" || ext == ".nomad"
}

func (f *formatter) file(e *env, path string) {
	src, info, err := readFormattable(path)
	if err != nil {
		f.fail(e, err)
		return
	}
	out, problems := hclfile.Format(path, src, hclfile.Limits{FileBytes: maxJobFile})
	if len(problems) > 0 {
		f.fail(e, problems)
		return
	}
	same := bytes.Equal(src, out)
	f.differ = f.differ || !same
	if !same && f.write && !f.check {
		if err := replaceFile(path, out, info); err != nil {
			f.fail(e, fmt.Errorf("write %s: %w", path, err))
			return
		}
	}
	switch {
	case f.list && !same:
		e.printf("%s\n", path)
	case !f.list && !f.write && !f.check:
		f.print(e, out)
	}
}

func readFormattable(path string) ([]byte, fs.FileInfo, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, nil, err
	} else if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s: it is no regular file", path)
	}
	file, err := os.Open(path) // named by the user
	if err != nil {
		return nil, nil, err
	}
	defer file.Close() //nolint:errcheck // read only
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	src, err := readHCL(path, file)
	return src, info, err
}

// readHCL reads a whole text of a bounded size.
func readHCL(name string, from io.Reader) ([]byte, error) {
	src, err := io.ReadAll(io.LimitReader(from, maxJobFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(src) > maxJobFile {
		return nil, fmt.Errorf("%s: over %d bytes: a file may have at most that many", name, maxJobFile)
	}
	return src, nil
}

// replaceFile replaces the text of a file that may be written to, and keeps its mode and, where that is allowed, its owner. Of
// a link, what it leads to is replaced. After an error the old text is still there.
func replaceFile(path string, text []byte, info fs.FileInfo) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	old, err := os.OpenFile(path, os.O_WRONLY, 0) // a file that is write-protected stays, even where its directory is not
	if err != nil {
		return err
	}
	if err := old.Close(); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	keepOwner(tmp, info)
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Chmod(info.Mode().Perm()), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// keepOwner sets a file's owner and group to those of another, as far as the user may.
func keepOwner(file *os.File, as fs.FileInfo) {
	if owner, ok := as.Sys().(*syscall.Stat_t); ok {
		_ = file.Chown(int(owner.Uid), int(owner.Gid)) // it stays the user's own otherwise
	}
}
