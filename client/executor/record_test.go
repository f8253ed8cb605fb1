package executor

import (
	"encoding/json"
	"strings"
	"testing"
)

// Records keep the names of their fields: an executor reads what an earlier version has written, and the other way round.
func TestRecordKeepsItsNames(t *testing.T) {
	const old = `{"Version":1,"ID":"a","State":"running","Pid":7,"Frozen":true,"Freezer":"/sys/fs/cgroup/a/cgroup.freeze"}`
	rec, err := decodeRecord([]byte(old))
	if err != nil || !rec.Suspended || rec.Freezer != "/sys/fs/cgroup/a/cgroup.freeze" {
		t.Fatalf("%+v, %v", rec, err)
	}
	data, err := json.Marshal(rec)
	if err != nil || !strings.Contains(string(data), `"Frozen":true`) {
		t.Errorf("written as %s, %v", data, err)
	}
	if opSuspend != "freeze" || opResume != "thaw" {
		t.Errorf("operations %q and %q: older executors know others", opSuspend, opResume)
	}
}
