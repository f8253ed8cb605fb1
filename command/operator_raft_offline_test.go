package command

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/structs"
)

// stoppedServer is the data directory of a server whose log has a node and a job with hostile names.
func stoppedServer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	raftDir := filepath.Join(dir, "server", "raft")
	if err := os.MkdirAll(raftDir, 0o700); err != nil {
		t.Fatal(err)
	}
	entries := []*raft.Log{{Index: 1, Term: 1, Type: raft.LogNoop}}
	add := func(kind structs.LogType, payload any) {
		data, err := fsm.Encode(kind, payload)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, &raft.Log{Index: uint64(len(entries) + 1), Term: 2, Type: raft.LogCommand, Data: data})
	}
	node := gpuNode(nodeA, hostile)
	node.SecretID = "keep-this-to-yourself"
	add(structs.LogNodeRegister, &structs.NodeRegisterEntry{Time: 1, EvalSeed: "a", Node: node})
	job := webJob()
	job.Meta = map[string]string{"note": hostile}
	add(structs.LogJobRegister, &structs.JobRegisterEntry{Time: 2, Job: job})
	log, err := raftboltdb.NewBoltStore(filepath.Join(raftDir, "raft.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(log.StoreLogs(entries), log.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRaftOffline(t *testing.T) {
	dir := stoppedServer(t)
	var none *fake
	reads := func(args ...string) string {
		t.Helper()
		got := none.run(t, append(append([]string{"operator", "raft"}, args...), dir)...)
		if got.code != exitDone || got.err != "" {
			t.Fatalf("%q: exit code %d, stderr %q", args, got.code, got.err)
		}
		if what := unclean(got.out); what != "" {
			t.Errorf("%q: stdout has %s", args, what)
		}
		if strings.Contains(got.out, "keep-this-to-yourself") {
			t.Errorf("%q: the secret of a node is shown", args)
		}
		return got.out
	}
	wants(t, reads("info"), "path:        "+dir, "length:      3", "first index: 1", "last index:  3", "last term:   2", "JobRegister   1", "No snapshots")

	var types []string
	for line := range strings.Lines(reads("logs")) {
		var entry struct {
			Index   uint64
			LogType string
			Body    struct{ Job *structs.Job }

			MessageType string
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		types = append(types, entry.LogType+" "+entry.MessageType)
		if entry.Index == 3 && (entry.Body.Job == nil || entry.Body.Job.Meta["note"] != hostile) {
			t.Errorf("another job than was registered: %+v", entry.Body.Job)
		}
	}
	if got := strings.Join(types, ", "); got != "LogNoop , LogCommand NodeRegister, LogCommand JobRegister" {
		t.Errorf("entries %q", got)
	}
	if pretty := reads("logs", "-pretty"); !strings.HasPrefix(pretty, "{\n    \"Index\": 1,\n") {
		t.Errorf("-pretty: %.100s", pretty)
	}

	rows := func(args ...string) map[string][]map[string]any {
		t.Helper()
		var all map[string][]map[string]any
		if err := json.Unmarshal([]byte(reads(append([]string{"state"}, args...)...)), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	all := rows()
	if len(all["Nodes"]) != 1 || all["Nodes"][0]["Name"] != hostile || len(all["Jobs"]) != 1 || all["Jobs"][0]["ID"] != "web" || all["Allocs"] == nil {
		t.Errorf("state %v", all)
	}
	if before := rows("-last-index=-1"); len(before["Nodes"]) != 1 || len(before["Jobs"]) != 0 || before["Jobs"] == nil {
		t.Errorf("before the last entry: %v", before)
	}

	for want, args := range map[string][]string{
		"one directory or file is needed": {"info"}, "no log of Raft's is there": {"state", t.TempDir()}, "there is no state": {"state", "-last-index=-9", dir},
	} {
		if got := none.run(t, append([]string{"operator", "raft"}, args...)...); got.code != exitFailed || !strings.Contains(got.err, want) || got.out != "" {
			t.Errorf("%q: exit code %d, output %q, stderr %q", args, got.code, got.out, got.err)
		}
	}
}
