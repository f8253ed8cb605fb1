package command

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/internal/printable"
	"github.com/nomadish/nomadish/nomadish/raftdata"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// offlineDetails is what the commands have in common that read the Raft data of a server that does not run.
const offlineDetails = `PATH is the data_dir of a server, its directory server/raft, or the file raft.db. The server must not run; its files are
not changed. It cannot be started while they are read.`

// offline is a command that reads Raft's data.
func offline(do func(ctx context.Context, e *env, d *raftdata.Data) error) func(context.Context, *env, []string) int {
	return func(ctx context.Context, e *env, args []string) int {
		if len(args) != 1 {
			return e.usage("one directory or file is needed, %d are named", len(args))
		}
		d, err := raftdata.Open(args[0])
		if err != nil {
			return e.fail(err)
		}
		defer d.Close() //nolint:errcheck // read only
		if err := do(ctx, e, d); err != nil {
			return e.fail(err)
		}
		return exitDone
	}
}

func raftInfo() spec {
	return spec{
		synopsis: "Summarize the Raft log and the snapshots of a stopped server",
		usage:    "PATH", example: "/var/lib/nomadish", local: true, details: offlineDetails,
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int { return offline(showRaftInfo) },
	}
}

func showRaftInfo(ctx context.Context, e *env, d *raftdata.Data) error {
	first, last, err := d.Range()
	if err != nil {
		return err
	}
	p := e.waiting("reading the log")
	defer p.stop()
	length, firstTerm, lastTerm, types := 0, uint64(0), uint64(0), map[string]int{}
	err = d.Entries(0, func(entry *raft.Log) error {
		if length++; length == 1 {
			firstTerm = entry.Term
		}
		lastTerm = entry.Term
		types[raftdata.TypeName(entry)]++
		return ctx.Err()
	})
	p.stop()
	if err != nil {
		return err
	}
	e.printf("path:        %s\nlength:      %d\nfirst index: %d\nlast index:  %d\nfirst term:  %d\nlast term:   %d\n",
		d.Path, length, first, last, firstTerm, lastTerm)
	if length > 0 {
		rows := [][]string{{"Entry Type", "Entries"}}
		for _, name := range slices.Sorted(maps.Keys(types)) {
			rows = append(rows, []string{name, fmt.Sprint(types[name])})
		}
		e.printf("\n")
		ui.Table(e.out, rows)
	}
	e.printf("\n")
	if len(d.Snapshots) == 0 {
		e.printf("No snapshots\n")
		return nil
	}
	rows := [][]string{{"Snapshot", "Index", "Term", "Size"}}
	for _, s := range d.Snapshots {
		rows = append(rows, []string{s.ID, fmt.Sprint(s.Index), fmt.Sprint(s.Term), bytesText(s.Size)})
	}
	ui.Table(e.out, rows)
	return nil
}

// raftEntry is a log entry as `operator raft logs` prints it.
type raftEntry struct {
	Index, Term uint64
	AppendedAt  time.Time
	LogType     string // Raft's
	MessageType string `json:",omitempty"`
	Body        any    `json:",omitempty"`
	Error       string `json:",omitempty"` // why Body is missing
}

func raftLogs() spec {
	return spec{
		synopsis: "Print the Raft log of a stopped server as JSON",
		usage:    "PATH", example: "-pretty /var/lib/nomadish", local: true,
		details: offlineDetails + "\n\nEach entry is printed in one line. The secrets of nodes and private keys are left out. The last entries may not have\n" +
			"been committed.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			pretty := fs.Bool("pretty", false, "indent the JSON")
			return offline(func(ctx context.Context, e *env, d *raftdata.Data) error {
				out := bufio.NewWriter(ui.Raw(e.out))
				err := d.Entries(0, func(entry *raft.Log) error {
					if ctx.Err() != nil {
						return ctx.Err()
					}
					return writeJSON(out, describe(entry), *pretty)
				})
				if flushed := out.Flush(); err == nil {
					err = flushed
				}
				return err
			})
		},
	}
}

func describe(entry *raft.Log) raftEntry {
	out := raftEntry{Index: entry.Index, Term: entry.Term, AppendedAt: entry.AppendedAt, LogType: entry.Type.String()}
	if entry.Type != raft.LogCommand {
		return out
	}
	out.MessageType = raftdata.TypeName(entry)
	body, err := raftdata.Payload(entry)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	out.Body = body
	return out
}

// writeJSON writes a value in one line, or indented, with what is not printable escaped as JSON does it.
func writeJSON(to io.Writer, v any, pretty bool) error {
	raw, err := json.Marshal(v)
	if pretty {
		raw, err = json.MarshalIndent(v, "", "    ")
	}
	if err != nil {
		return err
	}
	_, err = to.Write(append(printable.EscapeJSON(raw), '\n'))
	return err
}

func raftState() spec {
	return spec{
		synopsis: "Print the state of a stopped server as JSON",
		usage:    "PATH", example: "-last-index -1 /var/lib/nomadish", local: true,
		details: offlineDetails + "\n\nThe state is rebuilt from the newest snapshot and the log after it, of which the last entries may not have been\n" +
			"committed. It is an object with a list of rows for each table. The secrets of nodes and private keys are left out.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			last := fs.Int64("last-index", 0, "the `index` of the last entry to apply; 0 and less count from the end of the log")
			return offline(func(ctx context.Context, e *env, d *raftdata.Data) error {
				p := e.waiting("rebuilding the state from the snapshot and the log")
				snap, _, err := d.State(ctx, *last)
				p.stop()
				if err != nil {
					return err
				}
				out := bufio.NewWriter(ui.Raw(e.out))
				err = writeState(ctx, out, snap)
				if flushed := out.Flush(); err == nil {
					err = flushed
				}
				return err
			})
		},
	}
}

// writeState writes a state as a JSON object of lists, a row a line.
func writeState(ctx context.Context, out *bufio.Writer, snap *state.Snapshot) error {
	seen, table := map[string]bool{}, ""
	open := func(name string) {
		before := "],"
		if table == "" {
			before = "{"
		}
		_, _ = out.WriteString(before) // an error stays until Flush
		table, seen[name] = name, true
		_, _ = fmt.Fprintf(out, "\n%q: [", tableTitle(name))
	}
	first := false
	err := snap.Export(func(name string, row any) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if first = name != table; first {
			open(name)
		}
		if !first {
			_, _ = out.WriteString(",")
		}
		if a, ok := row.(*structs.Allocation); ok && a.Job != nil {
			bare := *a
			bare.Job = nil // it is among the jobs and their versions
			row = &bare
		}
		_, _ = out.WriteString("\n")
		raw, err := json.Marshal(raftdata.WithoutSecrets(row))
		if err != nil {
			return fmt.Errorf("a row of %s: %w", name, err)
		}
		_, err = out.Write(printable.EscapeJSON(raw))
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range state.Tables() {
		if !seen[name] {
			open(name)
		}
	}
	_, err = out.WriteString("]\n}\n")
	return err
}

// tableTitle is a table's name as Nomad writes it: job_versions is JobVersions.
func tableTitle(name string) string {
	if name == "index" {
		return "Indexes"
	}
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
