package guides

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/e2e/harness"
)

// oneNode starts an agent with a node as operations.md names it, and has the jobs there that the guide stops and restarts.
func oneNode(a *terminal) {
	a.t.Helper()
	agent := harness.NewAgent(a.t, true, "name = \"gpu-7\"\nenable_debug = true\n")
	agent.Start()
	agent.WaitReady(1)
	a.calls(agent)
	a.knowsNode()
	a.names["-prefix nightly-"] = "-prefix nightly- -yes" // the guide's reader confirms it at a terminal
	a.names["1m"], a.names["20s"], a.names["30s"] = "1s", "1s", "1s"
	a.write("jobs.hcl", "job \"NAME\" {\n type = \"TYPE\"\n group \"front\" {\n  task \"serve\" {\n   driver = \"mock_driver\"\n   config { run_for = \"1h\" }\n"+
		"   resources { cpu = CPU }\n  }\n }\n}\n")
	a.before = map[string]string{
		"nomadish job stop web api": registers("service", 10, "web api cache nightly-a nightly-b stays") + registers("batch", 10, "test-a") + registers("batch", 1_000_000, "large"),
		"nomadish job restart":      registers("service", 10, "web"),
	}
}

// registers is a script that registers jobs, which write made the file of, and waits until each runs or waits.
func registers(kind string, cpu int, jobs string) string {
	return fmt.Sprintf("for job in %s; do sed \"s/NAME/$job/; s/TYPE/%s/; s/CPU/%d/\" jobs.hcl | nomadish job run -detach -\n"+
		"until nomadish job status $job | grep -qE '^front +(1 +0 +0|0 +0 +1) '; do :; done; done\n", jobs, kind, cpu)
}

// knowsNode has the node of the cluster stand for the one whose ID pages show.
func (a *terminal) knowsNode() {
	a.t.Helper()
	out, code := a.run("nomadish node status -t '{{range .}}{{.ID}}{{end}}'")
	if code != 0 || len(out) < 36 {
		a.t.Fatalf("the ID of the node: exit code %d: %s", code, out)
	}
	a.ids["5f3a9c02"] = out[:8]
}

// site is the machines of three-servers.md: each has an address of its own on loopback, where its agent uses the default ports, and a directory
// that is /etc/nomadish.d there.
type site struct {
	*terminal
	network string // the first three numbers of the addresses
	keys    map[string]string
	agents  map[string]*harness.Agent
	waiting []*harness.Agent // until the service is enabled
}

// threeServers has what the guide shows as a file start the machines that it is of.
func threeServers(a *terminal) {
	a.t.Helper()
	s := &site{terminal: a, network: freeNetwork(a.t), agents: map[string]*harness.Agent{}, keys: map[string]string{}}
	for _, name := range []string{"encrypt", "gossip_encrypt", "KEY", "clients KEY"} {
		out, code := a.run("nomadish operator gossip keyring generate")
		if code != 0 {
			a.t.Fatal(out)
		}
		s.keys[name] = strings.TrimSpace(out)
	}
	s.keys["client_gossip_encrypt"] = s.keys["gossip_encrypt"]
	a.names["10.0.0."], a.names["gpu-3"] = s.network, "node-1"
	a.names["KEY"], a.names["OLD"] = s.keys["KEY"], s.keys["encrypt"]
	a.names["-clients KEY"], a.names["-clients OLD"] = "-clients "+s.keys["clients KEY"], "-clients "+s.keys["gossip_encrypt"]
	a.env = append(a.env, "HOME="+a.dir)
	a.before = map[string]string{"export NOMADISH_ADDR=https://10.0.0.1:4646\nexport NOMADISH_CACERT=/etc": "mkdir ~/.nomadish; cp global-cli-* ~/.nomadish\n"}
	a.file, a.service = s.install, s.enable
}

// freeNetwork returns the beginning of addresses of loopback at which nobody listens at the default ports.
func freeNetwork(t *testing.T) string {
	t.Helper()
	for i := range 200 {
		network := fmt.Sprintf("127.%d.%d.", 64+os.Getpid()%128, i)
		free := true
		for _, port := range []int{4646, 4647, 4648, 4649, 4650} {
			l, err := net.Listen("tcp", fmt.Sprintf("%s1:%d", network, port))
			if err != nil {
				free = false
				break
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if free {
			return network
		}
	}
	t.Fatal("the default ports are used on all of loopback")
	return ""
}

var keySetting = regexp.MustCompile(`(\w*encrypt)( *= *)"…"`)

// install writes the configuration that a page shows of a machine; that of a server for all three.
func (s *site) install(name, text string) {
	s.t.Helper()
	first := filepath.Dir(name)
	machines := map[string]string{first: s.network + "11"}
	if first == "server-1" {
		machines = map[string]string{first: s.network + "1", "server-2": s.network + "2", "server-3": s.network + "3"}
	}
	for machine, address := range machines {
		agent := harness.NewAgent(s.t, false, "")
		dir := filepath.Join(s.dir, machine)
		own := put(map[string]string{
			`"` + first + `"`: `"` + machine + `"`, "/var/lib/nomadish": filepath.Join(agent.Dir, "data"), "/etc/nomadish.d": dir, "10.0.0.": s.network,
		}, text)
		own = regexp.MustCompile(`(bind_addr *= *)".*"`).ReplaceAllString(own, fmt.Sprintf("${1}%q", address))
		own = keySetting.ReplaceAllStringFunc(own, func(setting string) string {
			m := keySetting.FindStringSubmatch(setting)
			return fmt.Sprintf("%s%s%q", m[1], m[2], s.keys[m[1]])
		})
		s.write(filepath.Join(machine, filepath.Base(name)), own)
		s.write(machine+".hcl", fmt.Sprintf("log_level = \"DEBUG\"\nclient {\n  cgroup_parent = %q\n}\n", harness.CgroupParent))
		agent.Args = []string{"agent", "-config", dir, "-config", filepath.Join(s.dir, machine+".hcl")}
		agent.HTTP = "https://" + address + ":4646"
		s.agents[machine] = agent
		s.waiting = append(s.waiting, agent)
	}
	s.names["/etc/nomadish.d"] = filepath.Join(s.dir, first)
}

// enable starts the agents that were installed since the last time.
func (s *site) enable(line string) {
	s.t.Helper()
	if line != "systemctl enable --now nomadish" || len(s.waiting) == 0 {
		s.t.Errorf("%q with %d agents to start", line, len(s.waiting))
	}
	for _, agent := range s.waiting {
		agent.Start()
	}
	s.waiting = nil
}
