package jobspec

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/command/jobspec/hclfile"
)

func TestParseJSON(t *testing.T) {
	const job = `{"ID":"x","Priority":7,"VaultNamespace":"p","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t","Driver":"raw_exec"}]}]}`
	for _, src := range []string{job, `{"Job":` + job + `}`, `{"job":` + job + `,"EnforceIndex":true}`} {
		got, warnings, err := ParseJSON("x.json", []byte(src), Options{})
		if err != nil || got.ID != "x" || got.Priority != 7 || len(warnings) != 1 {
			t.Errorf("%s: have %+v, %v, %v", src, got, warnings, err)
		}
	}

	bad := func(src, want string) {
		t.Helper()
		got, _, err := ParseJSON("x.json", []byte(src), Options{Options: hclfile.Options{Limits: hclfile.Limits{FileBytes: 200}}})
		if err == nil || got != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have %v, want %q", src, err, want)
		}
	}
	bad("{\n  \"ID\": x\n}", "x.json:2:9: invalid character 'x'")
	bad(`{"Job":{"Priority":"x"}}`, "x.json: Priority: want a number, have a string")
	bad(`{"ID":"x","TaskGroups":[{"Name":"g"}]}`, `x.json: job "x" > group "g": must have a task`)
	bad(`{}`, "x.json: the file has no job")
	bad(strings.Repeat(" ", 201), "the file has 201 bytes, more than the limit of 200")
	bad(``, "x.json:1:1: unexpected end of JSON input")
}
