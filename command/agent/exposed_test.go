package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/command/agent/config"
)

// configured returns the configuration that a text makes, with the data directory dir.
func configured(t *testing.T, dir, text string) *config.Config {
	t.Helper()
	c := config.Default()
	if strings.HasPrefix(text, "-dev\n") {
		c.SetDev()
	}
	if _, err := c.Merge("a.hcl", []byte(fmt.Sprintf("data_dir = %q\n", dir)+strings.TrimPrefix(text, "-dev\n"))); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := c.Validate(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

const (
	serverText  = "server {\n enabled = true\n}\n"
	clientText  = "client {\n enabled = true\n servers = [\"127.0.0.1\"]\n}\n"
	keyedText   = "server {\n enabled = true\n encrypt = \"MDEyMzQ1Njc4OWFiY2RlZg==\"\n client_gossip_encrypt = \"ZmVkY2JhOTg3NjU0MzIxMA==\"\n}\n"
	tlsText     = "tls {\n ca_file = \"c\"\n cert_file = \"a\"\n key_file = \"k\"\n rpc = true\n verify_server_hostname = true\n http = true\n verify_https_client = true\n}\n"
	keyringText = "[\"MDEyMzQ1Njc4OWFiY2RlZg==\"]\n"
)

// Which addresses unauthenticated callers could reach, and what protection each lacks: an agent starts only if nothing is.
func TestExposures(t *testing.T) {
	// Each row names what is refused: "HTTP 1.2.3.4:4646".
	f := func(text string, want ...string) {
		t.Helper()
		c := configured(t, t.TempDir(), text)
		var got []string
		for _, e := range exposures(c) {
			if e.set != "" {
				got = append(got, e.what+" "+e.addr)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\n got %q\nwant %q", text, got, want)
		}
		err := checkExposed(c)
		if (err != nil) != (len(want) > 0) {
			t.Errorf("%s: %v", text, err)
			return
		}
		for _, row := range want {
			at := strings.LastIndex(row, " ")
			what, addr := row[:at], row[at+1:]
			if !strings.Contains(err.Error(), "\n  "+what+" at "+addr+": set ") && !strings.Contains(err.Error(), "\n  "+what+" at "+addr+": remove ") {
				t.Errorf("%s: %q is not in\n%v", text, row, err)
			}
		}
		c.Insecure = true
		if err := checkExposed(c); err != nil {
			t.Errorf("%s, with insecure = true: %v", text, err)
		}
	}
	at := func(host string) []string {
		return []string{"HTTP " + host + ":4646", "RPC " + host + ":4647", "servers' gossip " + host + ":4648",
			"servers' gossip with other regions " + host + ":4649", "clients' gossip " + host + ":4650"}
	}
	f(serverText)
	f(clientText)
	f("-dev\n")
	for _, host := range []string{"127.0.0.1", "127.1.2.3", "::1", "localhost"} {
		f("bind_addr = \"" + host + "\"\n" + serverText)
	}
	for _, host := range []string{"0.0.0.0", "10.0.0.1", "203.0.113.5", "nowhere.invalid"} {
		f("bind_addr = \""+host+"\"\n"+serverText, at(host)...)
	}
	f("bind_addr = \"::\"\n"+serverText, at("[::]")...)
	f("bind_addr = \"10.0.0.1\"\n"+serverText+clientText, at("10.0.0.1")...)
	f("bind_addr = \"10.0.0.1\"\nports { serf_wan = -1 }\n"+serverText, slices.Delete(at("10.0.0.1"), 3, 4)...)
	f("bind_addr = \"10.0.0.1\"\nserver {\n enabled = true\n client_gossip = false\n}\n", at("10.0.0.1")[:4]...)
	f("-dev\nbind_addr = \"0.0.0.0\"", "HTTP 0.0.0.0:4646", "RPC 0.0.0.0:4647", "servers' gossip 0.0.0.0")
	f("bind_addr = \"10.0.0.1\"\n"+clientText, "HTTP 10.0.0.1:4646", "clients' gossip 10.0.0.1:4650")
	f("bind_addr = \"10.0.0.1\"\nclient {\n enabled = true\n servers = [\"10.0.0.2\"]\n gossip = false\n}", "HTTP 10.0.0.1:4646")
	f("addresses {\n http = \"127.0.0.1 10.0.0.1\"\n}\n"+serverText, at("10.0.0.1")[0])
	f("addresses {\n rpc = \"10.0.0.1\"\n}\n"+serverText, at("10.0.0.1")[1])
	f("addresses {\n serf = \"10.0.0.1\"\n}\n"+serverText, at("10.0.0.1")[2:4]...)
	f("addresses {\n serf_wan = \"10.0.0.1\"\n}\n"+serverText, at("10.0.0.1")[3])
	f("addresses {\n client_gossip = \"10.0.0.1\"\n}\n"+serverText, at("10.0.0.1")[4])
	f("advertise {\n http = \"10.0.0.1\"\n rpc = \"10.0.0.1\"\n serf = \"10.0.0.1\"\n client_gossip = \"10.0.0.1\"\n}\n"+serverText, at("10.0.0.1")[1:]...)
	f("advertise {\n http = \"10.0.0.1:443\"\n}\n" + serverText) // warned of: a proxy may guard it
	f("addresses {\n http = \"127.0.0.1 10.0.0.1\"\n}\nadvertise {\n http = \"10.0.0.2:443\"\n}\n"+serverText, at("10.0.0.1")[0])
	f("advertise {\n rpc = \"10.0.0.1:99\"\n}\n"+serverText, "RPC 10.0.0.1:99")
	f("advertise {\n serf = \"[2001:db8::1]:98\"\n}\n"+serverText, "servers' gossip [2001:db8::1]:98", "servers' gossip with other regions [2001:db8::1]:4649")
	f("advertise {\n serf_wan = \"2001:db8::1\"\n client_gossip = \"[2001:db8::2]:97\"\n}\n"+serverText,
		"servers' gossip with other regions [2001:db8::1]:4649", "clients' gossip [2001:db8::2]:97")
	f("advertise {\n serf_wan = \"10.0.0.1\"\n}\n"+serverText, at("10.0.0.1")[3])

	const open = "bind_addr = \"10.0.0.1\"\n"
	f(open + keyedText + tlsText)
	f(open+keyedText+strings.Replace(tlsText, " verify_https_client = true\n", "", 1), at("10.0.0.1")[0])
	f(open+keyedText, at("10.0.0.1")[:2]...)
	f(open+serverText+tlsText, at("10.0.0.1")[2:]...)
	f(open+keyedText+strings.Replace(tlsText, " verify_server_hostname = true\n", "", 1), at("10.0.0.1")[1])
	f(open+keyedText+strings.Replace(tlsText, " rpc = true\n", " rpc = true\n rpc_upgrade_mode = true\n", 1), at("10.0.0.1")[1])
	f(open + strings.Replace(clientText, " enabled", " gossip_encrypt = \"ZmVkY2JhOTg3NjU0MzIxMA==\"\n enabled", 1) + tlsText)
	f(open+clientText+tlsText, at("10.0.0.1")[4])
}

// The last lines of the error advise what is not set already.
func TestExposedAdvice(t *testing.T) {
	f := func(text string, bind, advertise bool) {
		t.Helper()
		err := checkExposed(configured(t, t.TempDir(), text+serverText))
		if err == nil {
			t.Fatalf("%s: no error", text)
		}
		if strings.Contains(err.Error(), "or set bind_addr") != bind || strings.Contains(err.Error(), "from the block advertise") != advertise {
			t.Errorf("%s: %v", text, err)
		}
	}
	f("bind_addr = \"10.0.0.1\"\n", true, false)
	f("addresses {\n rpc = \"10.0.0.1\"\n}\n", true, false)
	f("advertise {\n rpc = \"10.0.0.1\"\n}\n", false, true)
	f("addresses {\n http = \"10.0.0.1\"\n}\nadvertise {\n rpc = \"10.0.0.2\"\n}\n", true, true)
	f("bind_addr = \"10.0.0.1\"\nadvertise {\n rpc = \"10.0.0.2\"\n}\n", true, false) // loopback comes first
}

// Gossip whose keys are kept on the disk is encrypted with these, though the configuration has none.
func TestKeptKeysGuard(t *testing.T) {
	f := func(file, text string, want int) {
		t.Helper()
		dir := t.TempDir()
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(keyringText), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := exposures(configured(t, dir, "bind_addr = \"10.0.0.1\"\n"+tlsText+text)); len(got) != want {
			t.Errorf("%s: %v", file, got)
		}
	}
	f("other", serverText, 3)
	f("server/serf.keyring", serverText, 2)
	f("server/serf_wan.keyring", serverText, 2)
	f("server/clients.keyring", serverText, 2)
	f("other", clientText, 1)
	f("client/gossip.keyring", clientText, 0)
}

// An agent on loopback that is to meet other machines says so at its start.
func TestReachable(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if err := checkReachable(configured(t, t.TempDir(), text)); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %q", text, err, want)
		}
	}
	joins := func(addr string) string {
		return "server {\n enabled = true\n server_join {\n  retry_join = [\"127.0.0.1:5\", \"" + addr + "\"]\n }\n}\n"
	}
	f(joins("127.0.0.2:4648"), "")
	f(joins("localhost"), "")
	f(joins("nowhere.invalid"), "") // it may be there later
	f(joins("10.0.0.1"), "this server listens on 127.0.0.1 and is to join 10.0.0.1")
	f(joins("[2001:db8::1]:4648"), "is to join [2001:db8::1]:4648")
	f("bind_addr = \"10.0.0.2\"\n"+joins("10.0.0.1"), "")
	f("addresses {\n serf = \"10.0.0.2\"\n}\n"+joins("10.0.0.1"), "")
	f("advertise {\n serf = \"10.0.0.2\"\n}\n"+joins("10.0.0.1"), "") // somebody forwards it
	f(strings.Replace(joins("10.0.0.1"), "retry_join", "retry_join_wan", 1), "is to join 10.0.0.1")
	for _, more := range []string{"servers = [\"10.0.0.1\"]", "gossip_join = [\"10.0.0.1\"]", "server_join {\n retry_join = [\"10.0.0.1:4647\"]\n}"} {
		text := "client {\n enabled = true\n " + more + "\n}\n"
		f(text, "this client gossips on 127.0.0.1 and is to meet 10.0.0.1")
		f("bind_addr = \"10.0.0.2\"\n"+text, "")
	}
	f("client {\n enabled = true\n servers = [\"10.0.0.1\"]\n gossip = false\n}\n", "")
}
