package tenants

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/e2e/harness"
)

// TestNamespaces: what users do with namespaces, by commands and by Nomad's client. Two of them have a job of the same ID, and
// what is done with the one does not touch the other.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	f := func(want int, line string, parts ...string) {
		t.Helper()
		harness.CheckOutput(t, a, want, line, parts...)
	}
	file := filepath.Join(a.Dir, "b.hcl")
	text := "name = \"team-b\"\ndescription = \"Team B\"\ncapabilities {\n  disabled_task_drivers = [\"exec\"]\n}\nmeta {\n  owner = \"sre\"\n}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f(0, "namespace apply -description A team-a", `Successfully applied namespace "team-a"!`)
	f(0, "namespace apply "+file, `Successfully applied namespace "team-b"!`)
	f(0, "namespace apply -description B team-b")
	f(0, "namespace list", "default  Default shared namespace", "team-a   A", "team-b   B")
	f(0, "namespace status team-b", "DisabledDrivers      = exec", "owner = sre")
	f(1, "namespace apply a_b", "no such file")
	f(1, "namespace apply -quota q team-a", "not supported yet")
	f(1, "namespace status nope", `no namespace has a name that starts with "nope"`)

	job := func(driver string) string {
		return a.JobFile(driver, fmt.Sprintf("job \"web\" {\n  group \"g\" {\n    task \"t\" {\n      driver = %q\n      config {\n        command = \"/bin/sleep\"\n        args = [\"100000\"]\n      }\n    }\n  }\n}\n", driver))
	}
	f(1, "job run -namespace nope "+job("raw_exec"), `namespace "nope" does not exist`, "nomadish namespace apply nope")
	f(1, "job run -namespace team-b "+job("exec"), `driver "exec" is not allowed in namespace "team-b"`)
	f(0, "job run -detach -namespace team-a "+job("raw_exec"))
	f(0, "job run -detach -namespace team-b "+job("raw_exec"))
	f(0, "job status -namespace *", "team-a", "team-b")
	f(1, "job status web", `"web"`)
	f(1, "namespace delete team-a", "has non-terminal jobs: 1", "nomadish job status -namespace team-a")
	f(1, "namespace delete default", "can not delete default namespace")
	f(1, "namespace delete nope", "not found")

	c := a.Nomad
	running := func(namespace string) (n int) {
		t.Helper()
		list, _, err := c.Jobs().Allocations("web", true, &nomad.QueryOptions{Namespace: namespace})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range list {
			if one.Namespace != namespace {
				t.Errorf("allocation %s of namespace %s is listed for %s", one.ID, one.Namespace, namespace)
			}
			if one.ClientStatus == "running" {
				n++
			}
		}
		return n
	}
	// What several namespaces have is not guessed; what one alone has is found.
	f(1, "job status -namespace * web", `2 jobs have the ID "web"; say which with -namespace:`, "team-a", "team-b")
	f(1, "job stop -detach -namespace * web", `2 jobs have the ID "web"`)
	harness.Within(t, 20*time.Second, "both run", func(context.Context) error {
		if x, y := running("team-a"), running("team-b"); x != 1 || y != 1 {
			return fmt.Errorf("%d and %d run", x, y)
		}
		return nil
	})
	f(0, "job stop -detach -namespace team-a web")
	harness.Within(t, 20*time.Second, "team-a's job ended, and team-b's runs", func(context.Context) error {
		if x, y := running("team-a"), running("team-b"); x != 0 || y != 1 {
			return fmt.Errorf("%d and %d run", x, y)
		}
		return nil
	})
	f(0, "job stop -detach -purge -namespace team-a web")
	f(0, "job status -namespace * we", "Namespace", "team-b")
	f(0, "job inspect -namespace * web", `"Namespace": "team-b"`)
	f(0, "job allocs -namespace * web", "running")
	f(0, "job explain -namespace * web", `Job "web"`)
	inFile := "job \"own\" {\n  namespace = \"team-b\"\n  group \"g\" {\n    task \"t\" {\n      driver = \"raw_exec\"\n      config {\n        command = \"/bin/true\"\n      }\n    }\n  }\n}\n"
	for args, want := range map[string]string{"job status": "team-b", "job run -detach " + a.JobFile("own", inFile): "Job registration successful"} {
		cmd := a.Command(t.Context(), strings.Fields(args)...)
		cmd.Env = append(os.Environ(), "NOMADISH_ADDR="+a.HTTP, "NOMAD_NAMESPACE=*")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s with NOMAD_NAMESPACE=*: %v\n%s", args, err, out)
		}
	}
	harness.Within(t, 20*time.Second, "team-a deleted", func(context.Context) error {
		if out, code := a.CLI("namespace", "delete", "team-a"); code != 0 {
			return fmt.Errorf("exit code %d: %s", code, out)
		}
		return nil
	})

	// As programs see it.
	if _, err := c.Namespaces().Register(&nomad.Namespace{Name: "team-c", Description: "C", Meta: map[string]string{"a": "b"}}, nil); err != nil {
		t.Error(err)
	}
	got, meta, err := c.Namespaces().Info("team-c", nil)
	if err != nil || got.Description != "C" || got.Meta["a"] != "b" || got.CreateIndex == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := c.Namespaces().Register(&nomad.Namespace{Name: "team-c", Quota: "q"}, nil); err == nil || !strings.Contains(err.Error(), "not supported yet") {
		t.Errorf("a quota: %v", err)
	}
	changed := make(chan uint64, 1)
	go func() {
		_, later, _ := c.Namespaces().List(&nomad.QueryOptions{WaitIndex: meta.LastIndex, WaitTime: time.Minute})
		changed <- later.LastIndex
	}()
	if _, err := c.Namespaces().Delete("team-c", nil); err != nil {
		t.Error(err)
	}
	if later := <-changed; later <= meta.LastIndex {
		t.Errorf("a blocking list came back at index %d, begun at %d", later, meta.LastIndex)
	}
	list, _, err := c.Namespaces().PrefixList("team-", nil)
	if err != nil || len(list) != 1 || list[0].Name != "team-b" {
		t.Errorf("%v, %v", list, err)
	}
}
