package command

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// licensed is a license that two jobs use.
func licensed() *structs.LicenseStatus {
	return &structs.LicenseStatus{
		LicenseStub: structs.LicenseStub{License: structs.License{Name: "vcs", Count: 10, Description: "Simulator", Meta: map[string]string{"owner": "eda"}}, Used: 7, Free: 3},
		Users: []structs.LicenseUser{
			{Namespace: "default", JobID: "sim", TaskGroup: "g", Allocs: 2, Count: 6}, {Namespace: "team", JobID: "syn", TaskGroup: "g", Allocs: 1, Count: 1},
		},
	}
}

func TestLicenseApply(t *testing.T) {
	t.Parallel()
	f := newFake(t).on("GET /v1/license/vcs", licensed()).on("PUT /v1/license/vcs", nil).on("PUT /v1/license/spice", nil)
	got := f.run(t, "license", "apply", file(t, "l.hcl", "license \"vcs\" {\n  count = 10\n  description = \"Simulator\"\n}\nlicense \"spice\" {\n  count = 0\n}\n"))
	if got.code != exitDone || got.out != "Successfully applied license \"vcs\"!\nSuccessfully applied license \"spice\"!\n" {
		t.Errorf("%+v", got)
	}
	wants(t, strings.Join(f.bodies, "\n"), `"Name":"spice","Count":0`)
	if got := f.run(t, "license", "apply", "-count", "12", "-check-index", "7", "vcs"); got.code != exitDone {
		t.Errorf("%+v", got)
	}
	wants(t, strings.Join(f.bodies, "\n"), `"Count":12,"Description":"Simulator","Meta":{"owner":"eda"}`) // what is not stated stays
	if got := f.runIn(t, `[{"Name":"spice","Count":4}]`, "license", "apply", "-json", "-"); got.code != exitDone {
		t.Errorf("%+v", got)
	}
	bad := func(text, want string) {
		t.Helper()
		if got := f.runIn(t, text, "license", "apply", "-"); got.code != exitFailed || !strings.Contains(got.err, want) {
			t.Errorf("%q: %+v, want %q", text, got, want)
		}
	}
	bad("", "the file has no license")
	bad(`license "vcs" {}`, `1:1: license "vcs": count is missing`)
	bad("license \"vcs\" {\n  count = -1\n}\n", "2:")
	bad("license \"v c\" {\n  count = 1\n}\n", "1:1: license \"v c\": its name must be")
	bad("license \"vcs\" {\n  count = 1\n  desc = \"x\"\n}\n", `did you mean "description"?`)
	bad("license \"vcs\" {\n  count = 1\n}\nlicense \"vcs\" {\n  count = 1\n}\n", "twice")
	bad(`licence "vcs" {}`, `unknown block "licence"`)
	bad(`{"Name":"vcs"}`, "it looks like JSON")
	if got := f.run(t, "license", "apply", "nothing.hcl"); got.code != exitFailed || !strings.Contains(got.err, "no such file; state -count") {
		t.Errorf("%+v", got)
	}
	for _, line := range []string{"license apply", "license apply -description x vcs", "license apply -json -count 3 vcs"} {
		if got := f.run(t, strings.Fields(line)...); got.code != exitFailed {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// TestLicenseReservedBeyondCount: workflows whose reservations together exceed a count are named where it is lowered and where it is shown, not those that wait.
func TestLicenseReservedBeyondCount(t *testing.T) {
	t.Parallel()
	l := licensed()
	l.Reservations = []structs.LicenseReservation{
		{Namespace: "default", Workflow: "a", Reserved: 6}, {Namespace: "team", Workflow: "b", Reserved: 5}, {Namespace: "team", Workflow: "c", Reserved: 9, Pending: true},
	}
	want := `Warning: 11 of license "vcs" are reserved and there are 10: by workflow default/a (6), workflow team/b (5). `
	f := newFake(t).on("GET /v1/license/vcs", l).on("GET /v1/licenses", []*structs.LicenseStub{&l.LicenseStub}).on("PUT /v1/license/vcs", nil)
	wants(t, f.run(t, "license", "apply", "-count", "10", "vcs").err, want)
	wants(t, f.run(t, "license", "status", "vcs").out, want)
	l.Count = 11
	if got := f.run(t, "license", "apply", "-count", "11", "vcs"); strings.Contains(got.err, "Warning") {
		t.Error(got.err)
	}
}

// TestLicenseLent: of what borrowers use it is stated how much is lent in all, and of a reservation what there is not any more, if there is any such.
func TestLicenseLent(t *testing.T) {
	t.Parallel()
	l := licensed()
	l.Users[0].Borrows = "default/a"
	l.Reservations = []structs.LicenseReservation{{Namespace: "default", Workflow: "a", Reserved: 6, Used: 1, Lent: 2, Idle: 3}}
	f := newFake(t).on("GET /v1/license/vcs", l).on("GET /v1/licenses", []*structs.LicenseStub{&l.LicenseStub})
	got := f.run(t, "license", "status", "vcs").out
	if wants(t, got, "may borrow from workflow default/a, which lends 2 in all"); strings.Contains(got, "Lost") {
		t.Error(got)
	}
	l.Reservations[0].Lent, l.Reservations[0].Idle = 0, 5
	wants(t, f.run(t, "license", "status", "vcs").out, "free beside all reservations; may borrow from workflow default/a, which lends none now")
	l.Reservations[0].Lent, l.Reservations[0].Idle, l.Reservations[0].Lost = 2, 1, 2
	wants(t, f.run(t, "license", "status", "vcs").out, "Lent  Idle  Lost\ndefault    a         reserved  6         1     2     1     2\n")
}

func TestLicenseDelete(t *testing.T) {
	t.Parallel()
	f := newFake(t).on("DELETE /v1/license/vcs", nil)
	if got := f.run(t, "license", "delete", "vcs"); got.code != exitDone || got.out != "Successfully deleted license \"vcs\"!\n" {
		t.Errorf("%+v", got)
	}
	f = newFake(t).on("DELETE /v1/license/vcs", refusal{409, `license "vcs" is in use: 3`})
	if got := f.run(t, "license", "delete", "vcs"); got.code != exitFailed || !strings.Contains(got.err, "in use: 3") {
		t.Errorf("%+v", got)
	}
}
