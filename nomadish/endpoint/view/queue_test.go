package view

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// queueSite answers from a state in which jobs j0, j1, … wait, of falling priority.
func queueSite(t *testing.T, jobs int) *site {
	t.Helper()
	s := newSite(t)
	s.Put(&structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: "team"}})
	for i := range jobs {
		ns := []string{"default", "team"}[i%2]
		s.Put(&structs.JobRegisterEntry{Job: &structs.Job{
			ID: fmt.Sprintf("j%d", i), Namespace: ns, Type: structs.JobTypeService, Priority: 40 - i%40, NodePool: []string{"default", "gpu"}[i/4%2],
			TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 2}},
		}})
		s.Requests(ns, fmt.Sprintf("j%d", i), 1+i%2)
	}
	return s
}

func (s *site) queueText(t *testing.T, args structs.QueueRequest) (text, next string) {
	t.Helper()
	reply, err := s.queueList(t.Context(), &args)
	if err != nil {
		t.Fatalf("%+v: %v", args, err)
	}
	var out []string
	for _, e := range reply.Entries {
		out = append(out, fmt.Sprintf("%s%d:%s", e.NodePool[:1], e.Place, e.JobID))
	}
	return strings.Join(out, " "), reply.NextToken
}

func TestQueueList(t *testing.T) {
	s := queueSite(t, 8)
	f := func(what string, args structs.QueueRequest, want string) {
		t.Helper()
		if got, _ := s.queueText(t, args); got != want {
			t.Errorf("%s:\nhave %s\nwant %s", what, got, want)
		}
	}
	all := structs.QueryOptions{Namespace: "*"}
	with := func(change func(*structs.QueryOptions)) structs.QueryOptions {
		o := all
		change(&o)
		return o
	}
	f("all", structs.QueueRequest{QueryOptions: all}, "d1:j0 d2:j1 d3:j2 d4:j3 g1:j4 g2:j5 g3:j6 g4:j7")
	f("the default namespace", structs.QueueRequest{}, "d1:j0 d3:j2 g1:j4 g3:j6")
	f("another", structs.QueueRequest{QueryOptions: structs.QueryOptions{Namespace: "team"}}, "d2:j1 d4:j3 g2:j5 g4:j7")
	f("a pool", structs.QueueRequest{NodePool: "gpu", QueryOptions: all}, "g1:j4 g2:j5 g3:j6 g4:j7")
	f("no such pool", structs.QueueRequest{NodePool: "x", QueryOptions: all}, "")
	f("a prefix", structs.QueueRequest{QueryOptions: with(func(o *structs.QueryOptions) { o.Prefix = "j5" })}, "g2:j5")
	f("a filter", structs.QueueRequest{QueryOptions: with(func(o *structs.QueryOptions) { o.Filter = `Missing == 2 and State == "waiting"` })}, "d2:j1 d4:j3 g2:j5 g4:j7")
	f("a filter within", structs.QueueRequest{QueryOptions: with(func(o *structs.QueryOptions) { o.Filter = `Priority.Declared == 35` })}, "g2:j5")
	f("backwards", structs.QueueRequest{QueryOptions: with(func(o *structs.QueryOptions) { o.Reverse = true })}, "g4:j7 g3:j6 g2:j5 g1:j4 d4:j3 d3:j2 d2:j1 d1:j0")
	for _, reverse := range []bool{false, true} {
		var pages []string
		token := ""
		for range 4 {
			text, next := s.queueText(t, structs.QueueRequest{QueryOptions: with(func(o *structs.QueryOptions) {
				o.PerPage, o.NextToken, o.Reverse = 3, token, reverse
			})})
			pages = append(pages, text)
			if token = next; token == "" {
				break
			}
		}
		want := "d1:j0 d2:j1 d3:j2|d4:j3 g1:j4 g2:j5|g3:j6 g4:j7"
		if reverse {
			want = "g4:j7 g3:j6 g2:j5|g1:j4 d4:j3 d3:j2|d2:j1 d1:j0"
		}
		if got := strings.Join(pages, "|"); got != want {
			t.Errorf("pages, reverse %v:\nhave %s\nwant %s", reverse, got, want)
		}
	}
	// What stands at the token goes while somebody reads: the next page begins behind it.
	_, token := s.queueText(t, structs.QueueRequest{QueryOptions: with(func(o *structs.QueryOptions) { o.PerPage = 3 })})
	s.Requests("team", "j3", 0)
	f("after what the token names is placed", structs.QueueRequest{QueryOptions: with(func(o *structs.QueryOptions) { o.PerPage, o.NextToken = 2, token })}, "g1:j4 g2:j5")

	for _, bad := range []structs.QueryOptions{{Filter: "=="}, {Filter: "Nothing == 1"}, {PerPage: -1}} {
		if _, err := s.queueList(t.Context(), &structs.QueueRequest{QueryOptions: bad}); structs.CodeOf(err) != structs.CodeBadRequest {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// An answer is bounded whatever is requested.
func TestQueueIsBounded(t *testing.T) {
	s := queueSite(t, maxQueueEntries+5)
	for _, per := range []int{0, 1 << 30} {
		reply, err := s.queueList(t.Context(), &structs.QueueRequest{QueryOptions: structs.QueryOptions{Namespace: "*", PerPage: per}})
		if err != nil || len(reply.Entries) != maxQueueEntries || reply.NextToken == "" {
			t.Errorf("%d a page: %d entries, next %q, %v", per, len(reply.Entries), reply.NextToken, err)
		}
	}
}

func TestQueueBlocks(t *testing.T) {
	f := func(what string, change func(s *site), want string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := queueSite(t, 2)
			first, err := s.queueList(t.Context(), &structs.QueueRequest{})
			if err != nil {
				t.Fatal(err)
			}
			type answer struct {
				reply *structs.QueueReply
				err   error
			}
			done := make(chan answer)
			go func() {
				reply, err := s.queueList(context.Background(), &structs.QueueRequest{QueryOptions: structs.QueryOptions{
					MinQueryIndex: first.Index, MaxQueryTime: time.Minute,
				}})
				done <- answer{reply, err}
			}()
			synctest.Wait()
			change(s)
			got := <-done
			if got.err != nil {
				t.Fatal(got.err)
			}
			var text []string
			for _, e := range got.reply.Entries {
				text = append(text, fmt.Sprintf("%s %s %d", e.JobID, e.State, e.Missing))
			}
			if have := strings.Join(text, ", "); have != want || (got.reply.Index > first.Index) != (change != nil && what != "nothing") {
				t.Errorf("%s: %q at %d after %d, want %q", what, have, got.reply.Index, first.Index, want)
			}
		})
	}
	f("nothing", func(*site) {}, "j0 waiting 1")
	f("more is missing", func(s *site) { s.Requests("default", "j0", 2) }, "j0 waiting 2")
	f("placed", func(s *site) { s.Requests("default", "j0", 0) }, "")
	f("a new job", func(s *site) {
		s.Put(&structs.JobRegisterEntry{
			Job:  &structs.Job{ID: "late", Namespace: "default", Type: "service", Priority: 20, TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 7}}},
			Eval: &structs.Evaluation{ID: "e", Namespace: "default", JobID: "late", Status: structs.EvalStatusPending},
			Time: s.Now().UnixNano(),
		})
	}, "j0 waiting 1, late not-tried 7")
	f("room is kept", func(s *site) {
		s.Put(&structs.NodeRegisterEntry{Node: &structs.Node{ID: "n"}})
		s.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{
			Reserve: []*structs.Reservation{{NodeID: "n", Namespace: "default", JobID: "j0", Group: "g"}},
		}}})
	}, "j0 reserved 1")
}
