package structs

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestStatedShareOfNothing: a share of 0 that is stated is refused of JSON as of a file, for all would lend in the order of the blocks; one that is not stated is none,
// and what was read is written so that it is read again.
func TestStatedShareOfNothing(t *testing.T) {
	for text, want := range map[string]string{
		`[{"To": "user:a", "Share": 0}]`:                               "share: must be 1 to 1000000, not 0",
		`[{"To": "user:a"}, {"To": "user:b", "Share": 0}]`:             `lend "user:b": share: must be 1 to 1000000, not 0`,
		`[{"To": "user:a", "share": 1}, {"To": "user:b", "share": 0}]`: "share: it is 0 or not stated, and others have one",
		`[{"To": "user:a", "Share": -1}]`:                              "share: must be 1 to 1000000, not -1",
		`[{"To": "user:a", "LendLonger": true}]`:                       "",
		`[{"To": "user:a", "Share": null}]`:                            "",
		`[{"To": "user:a", "Share": 2}]`:                               "",
	} {
		w := workflowOf([]string{"a"})
		if err := json.Unmarshal([]byte(text), &w.Lend); err != nil {
			t.Fatal(err)
		}
		switch err := w.Validate(); {
		case (err == nil) != (want == ""), err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %q", text, err, want)
		case err != nil:
			continue
		}
		written, err := json.Marshal(w)
		again := &Workflow{}
		if err != nil || json.Unmarshal(written, again) != nil || again.Validate() != nil || again.Lend[0].Share != w.Lend[0].Share || again.Lend[0].LendLonger != w.Lend[0].LendLonger {
			t.Errorf("%s: written as %s, read as %+v", text, written, again.Lend[0])
		}
	}
}

// TestEachOfClaimJob: a job of a claim states what an instance of each of its groups needs, of devices only whole ones; a sysbatch job states nothing.
func TestEachOfClaimJob(t *testing.T) {
	group := func(count int, d *RequestedDevice) *TaskGroup {
		return &TaskGroup{
			Count: count, EphemeralDisk: &EphemeralDisk{SizeMB: 300},
			Tasks: []*Task{{Resources: &Resources{CPU: 100, MemoryMB: 10, Devices: []*RequestedDevice{d}}}},
		}
	}
	job := &Job{Type: JobTypeBatch, TaskGroups: []*TaskGroup{
		group(3, &RequestedDevice{Count: 2, Share: DeviceShareWhole}), group(1, &RequestedDevice{Count: 1, Share: DeviceShareWhole / 2}),
	}}
	want := []WorkflowPart{{CPU: 100, MemoryMB: 10, DiskMB: 300, Devices: 2}, {CPU: 100, MemoryMB: 10, DiskMB: 300}}
	if each := eachOf(job); !slices.EqualFunc(each, want, WorkflowPart.Equal) {
		t.Errorf("have %+v, want %+v", each, want)
	}
	if job.Type = JobTypeSysBatch; eachOf(job) != nil {
		t.Error("nothing is reserved for a sysbatch job")
	}
}
