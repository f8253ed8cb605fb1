package feasible

import (
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

func TestOperators(t *testing.T) {
	n := schedtest.Node("n1", func(n *structs.Node) {
		n.NodeClass = "big"
		n.Attributes["v"] = "1.2.3"
		n.Attributes["pre"] = "1.3.0-beta1"
		n.Attributes["cores"] = "16"
		n.Attributes["list"] = "a, b,c"
		n.Meta["rack"] = "r1"
	})
	m := NewMatcher()
	f := func(left, op, right string, want bool) {
		t.Helper()
		if got := m.Match(NodeResolver(n), left, op, right); got != want {
			t.Errorf("%s %s %s: %v", left, op, right, got)
		}
	}
	f("${attr.kernel.name}", "=", "linux", true)
	f("${attr.kernel.name}", "==", "windows", false)
	f("${attr.kernel.name}", "is", "linux", true)
	f("${attr.kernel.name}", "not", "linux", false)
	f("${attr.kernel.name}", "!=", "windows", true)
	f("${attr.gone}", "!=", "windows", true)
	f("${attr.gone}", "=", "", false)
	f("${attr.gone}", "=", "${attr.missing}", false)
	f("${node.unique.id}", "=", "n1", true)
	f("${node.unique.name}", "=", "name-n1", true)
	f("${node.datacenter}", "=", "dc1", true)
	f("${node.class}", "=", "big", true)
	f("${node.pool}", "=", "default", true)
	f("${meta.rack}", "=", "r1", true)
	f("${node.nonsense}", "is_set", "", false)
	f("linux", "=", "${attr.kernel.name}", true)
	f("${attr.cores}", ">", "9", true)
	f("${attr.cores}", ">=", "16", true)
	f("${attr.cores}", "<", "16.5", true)
	f("${attr.cores}", "<=", "15", false)
	f("${meta.rack}", "<", "r2", true)
	f("${attr.gone}", "<", "r2", false)
	f("${meta.rack}", "regexp", "^r[0-9]$", true)
	f("${meta.rack}", "regexp", "^x", false)
	f("${meta.rack}", "regexp", "[", false)
	f("${attr.list}", "set_contains", "a,c", true)
	f("${attr.list}", "set_contains_all", "a,d", false)
	f("${attr.list}", "set_contains_any", "d,b", true)
	f("${attr.list}", "set_contains_any", "d,e", false)
	f("${attr.list}", "is_set", "", true)
	f("${attr.list}", "is_not_set", "", false)
	f("${attr.gone}", "is_not_set", "", true)
	f("${attr.v}", "version", ">= 1.2, < 2", true)
	f("${attr.v}", "version", "~> 1.2", true)
	f("${attr.v}", "version", "~> 1.2.4", false)
	f("${attr.v}", "version", "nonsense", false)
	f("${attr.gone}", "version", ">= 0", false)
	f("${attr.pre}", "version", ">= 1.2", false)
	f("${attr.pre}", "version", ">= 1.3.0-beta0", true)
	f("${attr.pre}", "semver", ">= 1.2.0", true)
	f("${attr.pre}", "semver", "< 1.3.0", true)
	f("${attr.pre}", "semver", "~> 1.3.0", false)
	f("${attr.pre}", "semver", "1.2.0", false)
	f("${attr.pre}", "semver", "!= 1.2.0, >=1.2.0", true)
	f("${attr.v}", "nonsense", "x", false)
}

func TestVersions(t *testing.T) {
	f := func(a, b string, want int) {
		t.Helper()
		x, y := parseVersion(a, false), parseVersion(b, false)
		if x == nil || y == nil || x.Compare(y) != want || y.Compare(x) != -want {
			t.Errorf("%s, %s: %v, %v", a, b, x, y)
		}
	}
	f("1.2", "1.2.0", 0)
	f("v1.2", "1.3", -1)
	f("1.10", "1.9", 1)
	f("1.0.0-alpha", "1.0.0-alpha.1", -1)
	f("1.0.0-alpha.1", "1.0.0-alpha.beta", -1)
	f("1.0.0-beta.2", "1.0.0-beta.11", -1)
	f("1.0.0-rc.1", "1.0.0", -1)
	f("1.0.0+a", "1.0.0+b", 0)
	bad := func(s string, strict bool) {
		t.Helper()
		if parseVersion(s, strict) != nil {
			t.Errorf("%q is taken for a version (strict %v)", s, strict)
		}
	}
	for _, s := range []string{"", "x", "1.", "1..2", "-1", "1.0+", "+1"} {
		bad(s, false)
	}
	for _, s := range []string{"1.2", "v1.2.3", "1.02.3", "1.2.3-01", "1.2.3-a..b", "1.2.3-ä"} {
		bad(s, true)
	}
}

func TestDeviceConstraintsHaveUnits(t *testing.T) {
	d := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "a100", Attributes: map[string]*structs.Attribute{
		"memory": {IntVal: new(int64(80)), Unit: "GiB"},
	}}
	m := NewMatcher()
	f := func(left, op, right string, want bool) {
		t.Helper()
		if got := m.Match(DeviceResolver(d), left, op, right); got != want {
			t.Errorf("%s %s %s: %v", left, op, right, got)
		}
	}
	f("${device.attr.memory}", ">=", "40000 MiB", true)
	f("${device.attr.memory}", ">", "81 GiB", false)
	f("${device.model}", "=", "a100", true)
	f("${device.vendor}/${device.type}", "=", "nvidia/gpu", false)
	f("${device.attr.gone}", "is_set", "", false)
	f("${device.type}", "=", "gpu", true)
}

// FuzzVersion: no text makes the parsers panic, and comparing is antisymmetric.
func FuzzVersion(f *testing.F) {
	for _, s := range []string{"1.2.3", ">= 1.2, < 2", "~> 1.2.3-beta", "1.0.0+x", "v", "99999999999999999999"} {
		f.Add(s, "1.2.3")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, strict := range []bool{false, true} {
			parseVersionRules(a, strict).satisfied(b)
			x, y := parseVersion(a, strict), parseVersion(b, strict)
			if x != nil && y != nil && x.Compare(y) != -y.Compare(x) {
				t.Errorf("%q, %q: %d, %d", a, b, x.Compare(y), y.Compare(x))
			}
		}
	})
}

// FuzzQuantity: no text makes the comparison of values panic.
func FuzzQuantity(f *testing.F) {
	f.Add("80 GiB", "1e400")
	f.Fuzz(func(t *testing.T, a, b string) {
		if x, y := compareValues(a, b), compareValues(b, a); (x < 0) != (y > 0) && fmt.Sprint(a) == a {
			if _, _, ok := parseQuantity(a); !ok {
				t.Errorf("%q, %q: %d, %d", a, b, x, y)
			}
		}
	})
}
