package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Unknown names, wrong types and values that are not allowed are told together, each once.
func TestAllProblemsAtOnce(t *testing.T) {
	f := func(want string, files ...string) {
		t.Helper()
		dir, c := t.TempDir(), Default()
		for i, src := range files {
			if err := os.WriteFile(filepath.Join(dir, string(rune('a'+i))+".hcl"), []byte(src), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		_, err := c.Load(dir)
		if err == nil {
			t.Fatalf("%q: no problem", files)
		}
		got = append(got, strings.Split(err.Error(), "\n")...)
		if err := c.ValidateRead(); err != nil {
			got = append(got, strings.Split(err.Error(), "\n")...)
		}
		if have := strings.ReplaceAll(strings.Join(got, "\n"), dir+string(filepath.Separator), ""); have != want {
			t.Errorf("%q:\nhave %s\nwant %s", files, have, want)
		}
	}
	f(`a.hcl:2: regoin: unknown; did you mean "region"?
a.hcl:3: ports.http: want a number, have "many"
a.hcl:4: unknown name "yes": write true, or "yes" if it is meant as a string
a.hcl:1: data_dir "relative": must be an absolute path
b.hcl:1: log_level "LOUD": must be one of TRACE, DEBUG, INFO, WARN, ERROR, OFF`,
		"data_dir = \"relative\"\nregoin = \"x\"\nports { http = \"many\" }\nleave_on_terminate = yes", `log_level = "LOUD"`)
	// What is missing may be what could not be read: data_dir, whether it is a server, the servers of a client.
	f(`a.hcl:1: data_dri: unknown; did you mean "data_dir"?
a.hcl:2: server.enabeld: unknown; did you mean "enabled"?`, "data_dri = \"/d\"\nserver { enabeld = true }")
	f(`a.hcl:4: client.servers: want a list, have a value`, "data_dir = \"/d\"\nclient {\nenabled = true\nservers = \"x\"\n}")
	f(`a.hcl:4: unknown name "x": a string is written in quotes, "x"`, "client { enabled = true }\nserver {\nserver_join {\nretry_join = [x]\n}\n}")
	// Of a file that is no HCL nothing is known.
	f(`a.hcl:2: Unclosed configuration block: There is no closing brace for this block before the end of the file. `+
		`This may be caused by incorrect brace nesting elsewhere in this file.`, "log_level = \"LOUD\"\nserver {")
}
