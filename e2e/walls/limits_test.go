package walls

import (
	"fmt"
	"path"
	"strings"
	"testing"
)

// TestLimits adds a file that just keeps each limit, and one that is over it by one.
func TestLimits(t *testing.T) {
	lines := func(line string, n int) string { return strings.Repeat(line+"\n", n) }
	numbered := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+"\n", i)
		}
		return b.String()
	}
	f := func(want, file, src string, most int) {
		t.Helper()
		for n := most; n <= most+1; n++ {
			var with string
			switch {
			case strings.Contains(src, "%s"):
				with = fmt.Sprintf(src, lines("\tx++", n))
			default:
				with = src + lines("// a comment", n-1) // the package clause is a line too
			}
			tr, err := load(t).With(file, with)
			if err != nil {
				t.Fatal(err)
			}
			reported(t, tr, path.Dir(file), fmt.Sprint(n, " ", want), n > most)
		}
	}
	f("lines of command/ui/zz_size.go", "command/ui/zz_size.go", "package ui\n", mostFileLines)
	f("lines of command/ui/zz_size_test.go", "command/ui/zz_size_test.go", "package ui\n", mostFileLines)
	f("lines of the function zz", "command/ui/zz_size.go", "package ui\n\nfunc zz(x int) {\n%s\t// not counted\n}\n", mostFuncLines)
	f("lines of the function env.zz", "command/zz_size.go", "package command\n\nfunc (e *env) zz(x int) { func() {\n%s}() }\n", mostFuncLines)
	f("lines of the function a function literal", "command/ui/zz_size.go", "package ui\n\nvar zz = func(x int) {\n%s}\n", mostFuncLines)
	f("lines of the function zz", "command/ui/zz_size_test.go", "package ui\n\nfunc zz(x int) {\n%s}\n", mostTestFuncLines)

	g := func(want, head, each, tail string, most int) {
		t.Helper()
		for n := most; n <= most+1; n++ {
			tr, err := load(t).With("zz/zz.go", "package zz\n\n"+head+numbered(each, n)+tail)
			if err != nil {
				t.Fatal(err)
			}
			reported(t, tr, "zz", fmt.Sprint(n, " ", want), n > most)
		}
	}
	g("methods of zz.Wide", "type Wide struct{}\n", "func (w *Wide) M%d() {}", "", mostTypeMethods)
	g("methods of zz.Wide", "type Wide struct{}\n", "func m%d(w *Wide) {}", "", mostTypeMethods)
	g("methods of zz.Outer", "type Outer struct{ inner }\ntype inner struct{}\n", "func (i *inner) m%d() {}", "", mostTypeMethods)
	g("dependencies in zz.Deps", "type Deps struct {\n", "\tA%d func()", "}\n", mostDependencies)
	g("dependencies in zz.zzParts", "type part struct{ hidden int }\n\ntype zzParts struct {\n\tn int\n\tdata *struct{ Shown int }\n", "\ta%d *part", "}\n", mostDependencies)
	g("dependencies in zz.Options", "type Deps struct {\n", "\tA%d error", "}\n\ntype Options struct { Deps }\n", mostDependencies)
	g("settings of zz.Config", "type Config struct {\n", "\tA%d int", "}\n", mostSettings)
	g("settings of zz.GossipConfig", "type common struct {\n", "\tA%d int", "}\n\ntype GossipConfig struct { common }\n", mostSettings)
}

// reported fails the test unless a breach of wall 12 with the text is reported of the package, or is not.
func reported(t *testing.T, tr *Tree, pkg, text string, want bool) {
	t.Helper()
	for _, b := range beyond(tr.sizesOf(tr.pkgs[pkg]), nil) {
		if strings.Contains(b.String(), "wall 12: ") && strings.Contains(b.String(), ": "+text) {
			if !want {
				t.Errorf("reported: %s", b)
			}
			return
		}
	}
	if want {
		t.Errorf("not reported: %s", text)
	}
}

// TestPackageLimit: lines of several files count together, those of tests do not.
func TestPackageLimit(t *testing.T) {
	tr := load(t)
	for i, file := range []string{"zz/a.go", "zz/b.go", "zz/a_test.go", "structs/zz.go"} {
		var err error
		if tr, err = tr.With(file, "package zz\n"+strings.Repeat("//\n", 2499+i)); err != nil {
			t.Fatal(err)
		}
		reported(t, tr, "zz", fmt.Sprint(2500*(i+1), " lines of package zz"), false)
	}
	reported(t, tr, "zz", "5001 lines of package zz", true)
	reported(t, tr, "structs", "lines of package structs", false)
}

// TestNotCounted: handlers that stand in a table are no methods of what they are given, and rows of a test's tables no lines of it.
func TestNotCounted(t *testing.T) {
	var handlers, table strings.Builder
	for i := range mostTypeMethods + 1 {
		fmt.Fprintf(&handlers, "func h%d(r *request) {}\n", i)
		fmt.Fprintf(&table, "\th%d,\n", i)
	}
	tr, err := load(t).With("zz/zz.go", "package zz\n\ntype request struct{}\n"+handlers.String()+"\nvar table = []func(*request){\n"+table.String()+"}\n")
	if err != nil {
		t.Fatal(err)
	}
	reported(t, tr, "zz", fmt.Sprint(mostTypeMethods+1, " methods of zz.request"), false)

	rows := strings.Repeat("\tf(1)\n", mostTestFuncLines) + "\tfor range []int{\n" + strings.Repeat("\t\t1,\n", mostTestFuncLines) + "\t} {}\n"
	if tr, err = load(t).With("zz/zz_test.go", "package zz\n\nfunc TestTable() {\n\tf := func(int) {}\n"+rows+"}\n"); err != nil {
		t.Fatal(err)
	}
	for _, s := range tr.sizesOf(tr.pkgs["zz"]) {
		if strings.Contains(s.of, "TestTable in zz") && s.count != 3 {
			t.Errorf("%d %s, want 3", s.count, s.of)
		}
	}
}

// TestOutgrown: what is known to be beyond a limit may not grow, and its entry must go down with it.
func TestOutgrown(t *testing.T) {
	f := func(count int, want string) {
		t.Helper()
		got := beyond([]size{{of: "lines of x", where: "x", count: count, most: 10, why: "divide it"}}, map[string]int{"lines of x": 20})
		if want == "" && len(got) == 0 || len(got) == 1 && want != "" && strings.Contains(got[0].String(), want) {
			return
		}
		t.Errorf("%d: reported %v, want %q", count, got, want)
	}
	f(21, "21 lines of x, at most 20: divide it")
	f(20, "")
	f(19, "are 19 by now, not 20: lower the entry")
	f(11, "are 11 by now")
	f(10, "10 lines of x, within the limit of 10: remove the entry")
	if got := beyond(nil, map[string]int{"lines of x": 20}); len(got) != 1 || !strings.Contains(got[0].String(), "is not there any more") {
		t.Errorf("an entry for nothing: reported %v", got)
	}
}
