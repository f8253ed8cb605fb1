package structs

import (
	"strings"
	"testing"
)

func TestCertNames(t *testing.T) {
	f := func(name, role, region string) {
		t.Helper()
		gotRole, gotRegion, ok := ParseCertName(name)
		if gotRole != role || gotRegion != region || ok != (role != "") {
			t.Errorf("%q: %q of %q, %v; want %q of %q", name, gotRole, gotRegion, ok, role, region)
		}
		if ok && CertName(gotRole, gotRegion) != CertName(role, region) {
			t.Errorf("%q does not come back", name)
		}
	}
	f("server.global.nomad", "server", "global")
	f("client.eu-1.nomad", "client", "eu-1")
	f("cli.a.b.nomad", "cli", "a.b")
	f("Server.GLOBAL.Nomad", "server", "global")
	f("*.global.nomad", "", "")
	f("server.*.nomad", "", "")
	f("server..nomad", "", "")
	f("server.nomad", "", "")
	f("server.global.nomad.example", "", "")
	f("xserver.global.nomad", "", "")
	f("server.global.xnomad", "", "")
	f(".global.nomad", "", "")
	f("localhost", "", "")
	f("", "", "")
}

// A name states a role only if it is exactly that role's name, but for the case of letters.
func FuzzParseCertName(f *testing.F) {
	f.Add("server.global.nomad")
	f.Add("client..nomad")
	f.Add("SERVER.a.b.NOMAD")
	f.Fuzz(func(t *testing.T, name string) {
		role, region, ok := ParseCertName(name)
		if ok != (role != "" && region != "") {
			t.Fatalf("%q: %q of %q, %v", name, role, region, ok)
		}
		if ok && CertName(role, region) != strings.ToLower(name) {
			t.Fatalf("%q: %q of %q", name, role, region)
		}
	})
}
