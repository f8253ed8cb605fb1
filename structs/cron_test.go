package structs

import (
	"strings"
	"testing"

	"github.com/hashicorp/cronexpr"
)

func TestCheckCron(t *testing.T) {
	good := func(spec string) {
		t.Helper()
		if problem := checkCron(spec); problem != "" {
			t.Errorf("%s: refused: %s", spec, problem)
		}
		if _, err := cronexpr.Parse(spec); err != nil {
			t.Errorf("%s: accepted, but the library that runs it says %v", spec, err)
		}
	}
	good("* * * * *")
	good("*/15 0-6,12 1 jan-mar MON")
	good("0 0 L * *")
	good("0 0 15W * *")
	good("0 0 * * 5L")
	good("0 0 * * 6#3")
	good("30 3 * * * 2030")
	good("0 30 3 * * * *")
	good("@hourly")
	good("0 0 1-31/2 * ?")

	bad := func(spec, want string) {
		t.Helper()
		if problem := checkCron(spec); !strings.Contains(problem, want) {
			t.Errorf("%s: have %q, want %q", spec, problem, want)
		}
	}
	bad("", "it has 0 fields")
	bad("every day", "it has 2 fields")
	bad("* * * * * * * *", "it has 8 fields")
	bad("60 * * * *", `"60" is no minute`)
	bad("* 24 * * *", `"24" is no hour`)
	bad("* * 0 * *", `"0" is no day of the month`)
	bad("* * * foo *", `"foo" is no month`)
	bad("*/0 * * * *", `"*/0" is no minute`)
	bad("5-1 * * * *", `"5-1" is no minute`)
	bad("1,,2 * * * *", `"" is no minute`)
	bad("* * * * 5#6", `"5#6" is no day of the week`)
	bad("@often", "it has 1 fields")
}
