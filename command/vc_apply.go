package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/structs"
)

func vcApply() spec {
	return spec{
		synopsis: "Give namespaces cells, or change what they own",
		takes:    "file", usage: "<file>", example: "-when-free team-a.hcl",
		details: "The file is HCL (or JSON with -json); \"-\" reads standard input. Each virtual_cluster block is of the namespace of its name, which\n" +
			"must exist, and replaces all that the namespace owns. Several are applied in their order, up to the first that is refused.\n" +
			"`nomadish vc init` writes an example.\n" +
			"\n" +
			"An edit is refused if the cells of all namespaces could then not be had at once; the answer names the highest level that is\n" +
			"short, and how many cells are. An edit stops nothing: a job that loses its cells runs on as an opportunistic one.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			isJSON := fs.Bool("json", false, "the file is JSON, as the API has it, not HCL")
			whenFree := fs.Bool("when-free", false, "accept an edit that cannot be admitted now: it is pending until it can")
			check := fs.Int64("check-index", -1, "apply only if the virtual cluster's modify index is `N` (0: it must be new)")
			try := whatIfFlags(fs)
			return func(ctx context.Context, e *env, args []string) int {
				whatIf, err := try.wanted()
				if err != nil {
					return e.usage("%v", err)
				}
				file, err := readVirtualClusters(e.in, args[0], *isJSON)
				if err != nil {
					return e.fail(err)
				}
				if *check >= 0 && len(file.clusters) > 1 {
					return e.usage("-check-index is of one virtual cluster: apply them one by one")
				}
				if whatIf {
					return try.file(ctx, e, checking(*check, file.changes(args[0], *whenFree)...), file.placedChange)
				}
				edit := api.VirtualClusterEdit{WhenFree: *whenFree, CAS: *check >= 0, CheckIndex: uint64(max(0, *check))}
				for _, vc := range file.clusters {
					for _, warning := range pastWindows(vc, e.now()) {
						e.eprintf("Warning: %s\n", warning)
					}
					pending, err := submitVC(ctx, e.client.VirtualClusters(), vc, edit)
					if err != nil {
						return e.fail(file.refused(vc, err))
					}
					if pending != nil {
						e.printf("The edit of virtual cluster %q is pending: %s\n`nomadish vc status %s` shows when it has been admitted.\n",
							vc.Name, pendingReason(pending), shellWord(vc.Name))
						continue
					}
					e.printf("Successfully applied virtual cluster %q!\n", vc.Name)
				}
				return exitDone
			}
		},
	}
}

// pastWindows warns of windows that have ended: they change nothing any more. They are no errors, for a file keeps its windows when they
// have passed.
func pastWindows(vc *structs.VirtualCluster, now time.Time) (warnings []string) {
	for _, w := range vc.Windows {
		if !w.To.After(now) {
			warnings = append(warnings, fmt.Sprintf("virtual cluster %q: the window from %s to %s has ended already; it changes nothing", vc.Name, windowTime(w.From), windowTime(w.To)))
		}
	}
	return warnings
}

// submitVC submits an edit. It returns the edit if it is pending.
func submitVC(ctx context.Context, to api.VirtualClusters, vc *structs.VirtualCluster, edit api.VirtualClusterEdit) (*structs.PendingCells, error) {
	if _, err := to.Register(ctx, vc, edit); err != nil || !edit.WhenFree {
		return nil, err
	}
	now, _, err := to.Info(ctx, vc.Name, nil)
	if err != nil {
		return nil, fmt.Errorf("the edit of virtual cluster %q was accepted, but whether it is pending could not be read: %w", vc.Name, err)
	}
	return now.Pending, nil
}

// pendingReason returns what an edit waits for.
func pendingReason(p *structs.PendingCells) string {
	if p.Reason == "" {
		return "it has not been tried yet"
	}
	return p.Reason
}

// refused puts the place in the file before what the servers say is wrong with it. Windows they may have in another order.
func (v *virtualClusterFile) refused(vc *structs.VirtualCluster, err error) error {
	var answer *api.Error
	if !errors.As(err, &answer) || answer.Status != http.StatusBadRequest || v.ranges == nil || strings.Contains(answer.Msg, ": window ") {
		return err
	}
	return v.placed(vc, err)
}
