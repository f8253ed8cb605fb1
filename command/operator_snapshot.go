package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/nomadish/snapshot"
	"github.com/nomadish/nomadish/structs"
)

func snapshotSave() spec {
	return spec{
		synopsis: "Save the cluster's state to a file",
		usage:    "[FILE]", example: "backup.snap",
		details: "The file contains the servers' whole state: nodes, jobs, allocations, evaluations, the queue, the scheduler's configuration.\n" +
			"It is compressed and carries checksums, which the command verifies after the download. If FILE is not given, the name\n" +
			"contains the time. An existing file is not overwritten. Protect the file like the cluster itself: it contains job\n" +
			"files and the secrets of nodes.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			stale := fs.Bool("stale", false, "save the state of the server at -address, even without a leader; it may be out of date")
			return func(ctx context.Context, e *env, args []string) int {
				if len(args) > 1 {
					return e.usage("one file is written, %d are named", len(args))
				}
				name := "nomadish-state-" + e.now().UTC().Format("20060102-150405") + ".snap"
				if len(args) == 1 {
					name = args[0]
				}
				q := e.query()
				q.Stale = *stale
				from, size, err := e.client.Operator().SnapshotSave(ctx, q)
				if err != nil {
					return e.fail(err)
				}
				defer from.Close() //nolint:errcheck // read only
				info, err := e.keep(ctx, name, from, size)
				if err != nil {
					return e.fail(err)
				}
				e.printf("State up to log entry %d saved in %s (%s)\n", info.Meta.Index, name, bytesText(info.Bytes))
				return exitDone
			}
		},
	}
}

// keep writes an archive to a new file and checks it. What is not whole is removed.
func (e *env) keep(ctx context.Context, name string, from io.Reader, size int64) (info *structs.SnapshotInfo, err error) {
	if _, err := os.Lstat(name); err == nil {
		return nil, fmt.Errorf("%s: there is such a file already; name another", name)
	}
	part := name + ".part"
	file, err := os.OpenFile(filepath.Clean(part), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("save the state: %w", err)
	}
	defer func() {
		_ = file.Close() // it is on disk, or of no use
		if err != nil {
			_ = os.Remove(part)
		}
	}()
	p := e.progress("saved", size)
	defer p.stop()
	if _, err := io.Copy(file, p.reader(from)); err != nil {
		return nil, fmt.Errorf("save the state: %w", err)
	}
	p.now("checking the file")
	written, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", part, err)
	}
	if info, err = snapshot.Read(ctx, file, written); err != nil {
		return nil, fmt.Errorf("%s: it did not arrive whole: %w", name, err)
	}
	if err := file.Sync(); err != nil {
		return nil, fmt.Errorf("%s: %w", part, err)
	}
	if err := settle(part, name); err != nil {
		return nil, fmt.Errorf("save the state: %w", err)
	}
	return info, nil
}

// settle renames a file to its final name, and never overwrites another.
func settle(part, name string) error {
	err := os.Link(part, name) // unlike a rename it does not overwrite
	switch {
	case err == nil:
		return os.Remove(part)
	case errors.Is(err, fs.ErrExist):
		return err
	}
	mine, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // named by the user; no hard links there
	if err != nil {
		return err
	}
	if err := mine.Close(); err != nil {
		return err
	}
	return os.Rename(part, name)
}

func snapshotRestore() spec {
	return spec{
		synopsis: "Replace the cluster's state with a snapshot",
		takes:    "file", usage: "FILE", example: "backup.snap",
		details: "The contents of FILE replace the whole state of the cluster. Changes made after the snapshot was saved are lost, and\n" +
			"allocations that are not in the snapshot are stopped. The command and the leader both verify the whole file before\n" +
			"anything is changed. The cluster keeps its servers, so a snapshot can be restored into a new cluster. Writes are refused\n" +
			"during the restore.",
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return func(ctx context.Context, e *env, args []string) int {
				file, size, err := openArchive(args[0])
				if err != nil {
					return e.fail(err)
				}
				defer file.Close() //nolint:errcheck // read only
				p := e.progress("sent", size)
				defer p.stop()
				p.now("checking the file")
				if _, err := snapshot.Read(ctx, file, size); err != nil {
					return e.fail(fmt.Errorf("%s: %w", args[0], err))
				}
				p.now("")
				body := p.reader(io.NewSectionReader(file, 0, size))
				reply, err := e.client.Operator().SnapshotRestore(ctx, body, size)
				if err == nil && reply.Info == nil {
					err = errors.New("the server's answer does not state what it restored")
				}
				if err != nil {
					return e.fail(err)
				}
				p.stop()
				e.printf("State of index %d (saved %s) restored, at index %d\n", reply.Info.Meta.Index,
					reply.Info.Meta.Created.Format(time.RFC3339), reply.Index)
				return exitDone
			}
		},
	}
}

func openArchive(name string) (*os.File, int64, error) {
	file, err := os.Open(filepath.Clean(name))
	if err != nil {
		return nil, 0, fmt.Errorf("open the archive: %w", err)
	}
	about, err := file.Stat()
	if err == nil && !about.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		_ = file.Close() // read only
		return nil, 0, fmt.Errorf("archive %s: %w", name, err)
	}
	return file, about.Size(), nil
}

func snapshotInspect() spec {
	return spec{
		synopsis: "Verify a snapshot file and show its contents",
		takes:    "file", usage: "FILE", example: "backup.snap", local: true, output: true,
		details: "No agent is needed. Exits 1 if the file is damaged or incomplete.",
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return func(ctx context.Context, e *env, args []string) int {
				file, size, err := openArchive(args[0])
				if err != nil {
					return e.fail(err)
				}
				defer file.Close() //nolint:errcheck // read only
				p := e.progress("checking the file", 0)
				defer p.stop()
				info, err := snapshot.Read(ctx, file, size)
				p.stop()
				if err != nil {
					return e.fail(fmt.Errorf("%s: %w", args[0], err))
				}
				if done, code := e.formatted(info); done {
					return code
				}
				showSnapshot(&e.printer, info)
				return exitDone
			}
		},
	}
}

func showSnapshot(p *printer, info *structs.SnapshotInfo) {
	m := &info.Meta
	var servers []string
	for _, s := range m.Servers {
		voter := ""
		if !s.Voter {
			voter = " (no voter)"
		}
		servers = append(servers, s.ID+" at "+s.Address+voter)
	}
	ui.Pairs(p.out, []ui.Pair{
		{Key: "Index", Value: fmt.Sprint(m.Index)},
		{Key: "Term", Value: fmt.Sprint(m.Term)},
		{Key: "Created", Value: m.Created.Format(time.RFC3339)},
		{Key: "Saved By", Value: fmt.Sprintf("%s, version %s, region %s", ui.OrNone(m.Server), ui.OrNone(m.Version), ui.OrNone(m.Region))},
		{Key: "Servers", Value: ui.OrNone(strings.Join(servers, ", "))},
		{Key: "Format", Value: fmt.Sprint(m.Format)},
		{Key: "Size", Value: fmt.Sprintf("%s, %s uncompressed", bytesText(info.Bytes), bytesText(m.StateBytes))},
		{Key: "SHA-256", Value: info.Digest},
	})
	p.printf("\n")
	rows, bytes := 0, int64(0)
	table := [][]string{{"Table", "Rows", "Size"}}
	for _, t := range info.Tables {
		table = append(table, []string{t.Name, fmt.Sprint(t.Rows), bytesText(t.Bytes)})
		rows, bytes = rows+t.Rows, bytes+t.Bytes
	}
	ui.Table(p.out, append(table, []string{"total", fmt.Sprint(rows), bytesText(bytes)}))
}
