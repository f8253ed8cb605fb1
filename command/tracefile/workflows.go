package tracefile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/scheduler/trace"
	"github.com/nomadish/nomadish/structs"
)

// lendLonger stands behind a borrower who may borrow for longer than the stage lasts.
const lendLonger = "longer"

// workflowRow reads what a row states about the workflow that it is of; nil: it is of none.
func workflowRow(t *table, o *Options) *trace.WorkflowRow {
	name := t.text("workflow")
	if name == "" {
		for _, column := range []string{"stage", "reserve", "lend"} {
			if t.text(column) != "" {
				t.fail(column, "%s %q: is stated, but workflow is empty", column, clip(t.text(column)))
			}
		}
		return nil
	}
	w := &trace.WorkflowRow{
		Name: o.name(name), Stage: t.whole("stage", 0, 1, structs.MaxWorkflowStages), Reserve: o.word(t.text("reserve")),
	}
	if t.text("stage") == "" {
		t.fail("workflow", "workflow %q: stage must be stated, a number from 1", clip(name))
	}
	if text := t.text("lend"); text != "" {
		var err error
		if w.Lend, err = parseLends(text); err != nil {
			t.fail("lend", "lend %q: %s", clip(text), err)
		}
	}
	return w
}

// parseLends reads "namespace:a=2|namespace:b=1 longer".
func parseLends(text string) (list []*structs.WorkflowLend, err error) {
	for part := range strings.SplitSeq(text, "|") {
		words := strings.Fields(part)
		if len(words) == 0 || len(words) > 2 || len(words) == 2 && words[1] != lendLonger {
			return nil, fmt.Errorf("must be borrowers with | between them, such as namespace:a=2|namespace:b=1 %s", lendLonger)
		}
		to, share, stated := strings.Cut(words[0], "=")
		l := &structs.WorkflowLend{To: strings.Clone(to), LendLonger: len(words) == 2}
		if stated {
			if l.Share, err = strconv.Atoi(share); err != nil || l.Share < 1 || l.Share > structs.MaxLendShare {
				return nil, fmt.Errorf("share %q: must be a number from 1 to %d", clip(share), structs.MaxLendShare)
			}
		}
		kind, name, _ := strings.Cut(l.To, ":")
		switch {
		case kind != "namespace" && kind != "node_pool" || name == "":
			return nil, fmt.Errorf("%q: must be namespace:NAME or node_pool:%s; rows of a trace have no user and no project", clip(l.To), structs.DefaultNodePool)
		case kind == "node_pool" && name != structs.DefaultNodePool:
			return nil, fmt.Errorf("%q: all nodes of a replay are in the pool %s", clip(l.To), structs.DefaultNodePool)
		case slices.ContainsFunc(list, func(o *structs.WorkflowLend) bool { return o.To == l.To }):
			return nil, fmt.Errorf("%s is stated twice", clip(l.To))
		case len(list) > 0 && (list[0].Share > 0) != (l.Share > 0):
			return nil, fmt.Errorf("%s: state a share for all borrowers, or for none", clip(l.To))
		}
		list = append(list, l)
	}
	return list, nil
}

// lendsText writes borrowers as parseLends reads them.
func lendsText(list []*structs.WorkflowLend) string {
	texts := make([]string, len(list))
	for i, l := range list {
		if texts[i] = l.To; l.Share > 0 {
			texts[i] += "=" + strconv.Itoa(l.Share)
		}
		if l.LendLonger {
			texts[i] += " " + lendLonger
		}
	}
	return strings.Join(texts, "|")
}
