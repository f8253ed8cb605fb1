package diskroom

import "testing"

func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	if r, err := Measure(dir); err != nil || r.Path != dir || r.Total == 0 || r.Free > r.Total {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Measure(dir + "/nowhere"); err == nil {
		t.Error("a directory that is not there has room")
	}
}
