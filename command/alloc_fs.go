package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func allocFS() spec {
	return spec{
		synopsis: "List an allocation's directory, or print a file of it",
		usage:    "<allocation> [<path>]", example: "5f3a9c01 alloc/logs/", output: true,
		details: "A directory is listed, a file is printed. With -job, the newest running allocation of the job is used.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o tailOptions
			o.flags(fs)
			machine := fs.Bool("H", false, "sizes in bytes and times in full")
			stat := fs.Bool("stat", false, "facts about a file instead of its content")
			job := fs.Bool("job", false, "a job is named instead of an allocation")
			group := fs.String("group", "", "with -job: an allocation of this `group`")
			fs.Bool("verbose", false, "accepted, for scripts made for Nomad")
			return func(ctx context.Context, e *env, args []string) int {
				if err := o.check(); err != nil {
					return e.usage("%v", err)
				}
				if len(args) == 0 || len(args) > 2 {
					return e.usage("an allocation is needed, and maybe a path; %d arguments given", len(args))
				}
				if *group != "" && !*job {
					return e.usage("-group goes with -job only")
				}
				path := "/"
				if len(args) == 2 {
					path = args[1]
				}
				id, err := e.fsSource(ctx, args[0], *job, *group)
				if err != nil {
					return e.fail(err)
				}
				info, err := e.client.AllocFS().Stat(ctx, id, path)
				if err != nil {
					return e.fail(err)
				}
				switch {
				case *stat:
					return showFiles(e, []*structs.AllocFileInfo{info}, info, *machine)
				case info.IsDir:
					files, err := e.client.AllocFS().List(ctx, id, path)
					if err != nil {
						return e.fail(err)
					}
					return showFiles(e, files, files, *machine)
				}
				if done, code := e.formatted(info); done {
					return code
				}
				return printFile(ctx, e, id, path, &o)
			}
		},
	}
}

func (e *env) fsSource(ctx context.Context, name string, job bool, group string) (string, error) {
	if job {
		return e.allocOfJob(ctx, name, group)
	}
	stub, err := e.oneAlloc(ctx, name)
	if err != nil {
		return "", err
	}
	return stub.ID, nil
}

func showFiles(e *env, files []*structs.AllocFileInfo, shown any, machine bool) int {
	if done, code := e.formatted(shown); done {
		return code
	}
	rows := [][]string{{"Mode", "Size", "Modified Time", "Content Type", "Name"}}
	for _, f := range files {
		size, at, name := ui.Bytes(uint64(max(0, f.Size))), ui.Ago(f.ModTime.UnixNano(), e.now()), f.Name
		if machine {
			size, at = fmt.Sprint(f.Size), ui.Time(f.ModTime.UnixNano())
		}
		if f.IsDir {
			name += "/"
		}
		rows = append(rows, []string{f.FileMode, size, at, cmp.Or(f.ContentType, "-"), name})
	}
	ui.Table(e.out, rows)
	return exitDone
}

func printFile(ctx context.Context, e *env, id, path string, o *tailOptions) int {
	err := o.copyTail(ui.Raw(e.out), func(origin string, offset int64, follow bool, w io.Writer) error {
		if !follow && origin == "start" && offset == 0 {
			return e.cat(ctx, id, path, w)
		}
		return e.client.AllocFS().Stream(ctx, id, path, origin, offset, follow, w)
	})
	if o.follow && errors.Is(err, context.Canceled) {
		return exitDone // this is how following ends
	}
	if err != nil {
		return e.fail(err)
	}
	return exitDone
}

func (e *env) cat(ctx context.Context, id, path string, w io.Writer) error {
	body, err := e.client.AllocFS().Cat(ctx, id, path)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // read only
	if _, err := io.Copy(w, body); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
