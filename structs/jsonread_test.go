package structs

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// plainJobs are read without a tree; oddJobs must not be, as they are wrong, or their meaning hangs on the order or case of names.
var (
	plainJobs = []string{
		`{}`,
		` { "ID" : "x" , "Priority" : 7 } `,
		`{"ID":"a\"\u00e9\n","Name":"ü","AllAtOnce":null,"Datacenters":[],"Meta":{"a":"1","b":""},"Unknown":{"x":[1,{"y":null}]}}`,
		`{"ID":"x","TaskGroups":[{"Name":"g","Count":2.0,"Volumes":{"v":{}},"RestartPolicy":{"Attempts":3,"Delay":"15s"},
			"Tasks":[{"Name":"t","Config":{"a":[1,2.5,-3e2,true,false,null,"s",{"b":{}}],"n":12345678901234567890},"KillTimeout":5000000000,
			"Resources":{"CPU":20,"MemoryMB":16,"Devices":[{"Name":"gpu","Count":null}]},"LogConfig":{"MaxFiles":2}}]}]}`,
		`{"ID":"x","Periodic":{"Spec":"* * * * *"},"Payload":"aGVsbG8=","TaskGroups":[],"Stop":true,"Version":3}`,
		`{"ID":"\ud800","Meta":{"k":"` + "\xff" + `"}}`,
	}
	oddJobs = []string{
		``, `null`, `[]`, `{`, `{"ID":"x"`, `{"ID":"x",}`, `{"ID":"x"} 1`, `{"ID":1}`, `{"id":"x"}`, `{"ID":"x","ID":"y"}`,
		`{"Priority":01}`, `{"Priority":1.5}`, `{"Priority":-}`, `{"Priority":1.}`, `{"Priority":1e}`, `{"Priority":"1"}`, `{"ID":"` + "\x01" + `"}`,
		`{"ID":"\x"}`, `{"ID":tru}`, `{"AllAtOnce":tru}`, `{"TaskGroups":[null]}`, `{"TaskGroups":{}}`, `{"TaskGroups":[{}`, `{"TaskGroups":[{},]}`,
		`{"Meta":{"a":1}}`, `{"Payload":"%"}`, `{"UI":[]}`, `{"x":[1,2}`, `{"x":nul}`, `{1:2}`, `{"TaskGroups":[{"RestartPolicy":{"Delay":"15"}}]}`,
		`{"x":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`,
	}
)

func TestJobsReadAlike(t *testing.T) {
	for _, text := range plainJobs {
		readAlike(t, []byte(text))
		if !readFast([]byte(text), reflect.ValueOf(new(Job)).Elem()) {
			t.Errorf("%s: not read fast", text)
		}
	}
	for _, text := range oddJobs {
		var j Job
		if readFast([]byte(text), reflect.ValueOf(&j).Elem()) {
			t.Errorf("%s: read fast", text)
		}
		if !reflect.DeepEqual(j, Job{}) {
			t.Errorf("%s: something was left: %+v", text, j)
		}
	}
}

// readAlike sees to it that what is read fast is what the tree gives, of a job and of a request with it.
func readAlike(t *testing.T, text []byte) {
	t.Helper()
	var fast, slow Job
	if readFast(text, reflect.ValueOf(&fast).Elem()) {
		if err := decodeTree(text, reflect.ValueOf(&slow).Elem()); err != nil || !reflect.DeepEqual(fast, slow) {
			t.Errorf("%s: %v\n%+v\n%+v", text, err, fast, slow)
		}
	}
	body := []byte(`{"EnforceIndex":true,"Job":` + string(text) + `,"Submission":{"Source":"s"},"JobModifyIndex":3,"Region":"r"}`)
	for _, b := range [][]byte{body, text} {
		var quick, usual JobRegisterRequest
		if quick.FromJSON(b) {
			if err := json.Unmarshal(b, &usual); err != nil || !reflect.DeepEqual(quick, usual) {
				t.Errorf("%s: %v\n%+v\n%+v", b, err, quick, usual)
			}
		} else if !reflect.DeepEqual(quick, JobRegisterRequest{}) {
			t.Errorf("%s: something was left: %+v", b, quick)
		}
	}
}

func TestRequestsReadAlike(t *testing.T) {
	for _, text := range plainJobs {
		var r JobRegisterRequest
		if !r.FromJSON([]byte(`{"Job":`+text+`,"PreserveCounts":true}`)) || r.Job == nil || !r.PreserveCounts {
			t.Errorf("%s: not read fast: %+v", text, r)
		}
	}
	for body, fast := range map[string]bool{
		`{"Job":null}`: true, `{"Diff":true}`: true, `{}`: true, `null`: false, `[]`: false, `{"job":{}}`: false, `{"Job":{},"JOB":{}}`: false,
		`{"Job":{},"Job":{}}`: false, `{"Job":{}}}`: false, `{"Job":{},"Diff":1}`: false, `{"Job":[]}`: false, `{"Diff":1e999}`: false,
	} {
		var r, usual JobPlanRequest
		if r.FromJSON([]byte(body)) != fast {
			t.Errorf("%s: read fast: %v", body, !fast)
		}
		if err := json.Unmarshal([]byte(body), &usual); fast && (err != nil || !reflect.DeepEqual(r, usual)) {
			t.Errorf("%s: %v\n%+v\n%+v", body, err, r, usual)
		}
	}
}

func FuzzJobsReadAlike(f *testing.F) {
	for _, text := range append(plainJobs, oddJobs...) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { readAlike(t, text) })
}
