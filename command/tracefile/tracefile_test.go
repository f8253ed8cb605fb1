package tracefile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler/trace"
)

// file writes a file for a test.
func file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func rowsOf(t *testing.T, tr *Trace) (out []trace.Row) {
	t.Helper()
	for row, err := range tr.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, *row)
	}
	return out
}

const (
	simpleText = "arrival,duration,count,cpu,memory,gpus,share,model,tenant,priority,gang,max_run_duration,reclaim,name\n" +
		"20,5.5,2,1000,2048,1,250,B|A,team,80,false,7,suspend,second\n" +
		"10,,1,500,1024,8,,,,,true,,,first\n"
	openbText = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n" +
		"p0,12000,16384,1,460,V100M32|V100M16,LS,Running,100,400,150\np1,6000,12288,0,0,,LS,Pending,50,,\n"
	phillyText = "timestamp,duration,num_gpus,gpu_time,cluster\n" +
		"2017-10-09 07:01:55,66.0,12,66.0,11cb48\n2017-10-09 06:13:03,2951.0,1,2951.0,6214e9\n"
)

func TestSimple(t *testing.T) {
	tr, err := Open(file(t, "a.csv", simpleText), Options{})
	if err != nil || tr.Format != FormatSimple || tr.Len() != 2 {
		t.Fatalf("%+v %v", tr, err)
	}
	rows := rowsOf(t, tr)
	first, second := rows[0], rows[1]
	if first.Name != "first" || first.Arrival != 10*time.Second || first.Duration != trace.Forever || first.GPUs != 8 || !first.Gang {
		t.Errorf("%+v", first)
	}
	if second.Count != 2 || second.CPU != 1000 || second.MemoryMB != 2048 || second.Share != 250 || !slices.Equal(second.Models, []string{"A", "B"}) ||
		second.Tenant != "team" || second.Priority != 80 || second.Gang || second.MaxRun != 7*time.Second || second.Reclaim != "suspend" ||
		second.Duration != 5500*time.Millisecond {
		t.Errorf("%+v", second)
	}
}

func TestOpenB(t *testing.T) {
	tr, err := Open(file(t, "a.csv.gz", zipped(t, openbText)), Options{})
	if err != nil || tr.Format != FormatOpenB || tr.Timeless {
		t.Fatalf("%+v %v", tr, err)
	}
	rows := rowsOf(t, tr)
	if r := rows[1]; r.CPU != 12000 || r.MemoryMB != 16384 || r.GPUs != 1 || r.Share != 460 || r.Arrival != 100*time.Second ||
		r.Duration != 250*time.Second || !slices.Equal(r.Models, []string{"V100M16", "V100M32"}) {
		t.Errorf("%+v", r)
	}
	if r := rows[0]; r.Name != "p1" || r.GPUs != 0 || r.Share != 0 || r.Duration != trace.Forever {
		t.Errorf("%+v", r)
	}
	if tr, err = Open(file(t, "b.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,8,1000\n"), Options{}); err != nil || !tr.Timeless {
		t.Errorf("%+v %v: want one without times", tr, err)
	}
}

func TestPhilly(t *testing.T) {
	tr, err := Open(file(t, "a.csv", phillyText), Options{GPUsPerNode: 8})
	if err != nil || tr.Format != FormatPhilly {
		t.Fatalf("%+v %v", tr, err)
	}
	rows := rowsOf(t, tr)
	if r := rows[0]; r.Arrival != 0 || r.GPUs != 1 || r.Count != 1 || r.Gang || r.Tenant != "6214e9" || r.Duration != 2951*time.Second {
		t.Errorf("%+v", r)
	}
	if r := rows[1]; r.Arrival != 48*time.Minute+52*time.Second || r.GPUs != 6 || r.Count != 2 || !r.Gang {
		t.Errorf("%+v", r)
	}
}

// A trace with more rows than are kept is read row by row, and must be sorted.
func TestStreams(t *testing.T) {
	var sorted, mixed strings.Builder
	for _, b := range []*strings.Builder{&sorted, &mixed} {
		b.WriteString("arrival,duration,cpu,memory\n")
	}
	for i := range 100 {
		fmt.Fprintf(&sorted, "%d,1,1,1\n", i/2)
		fmt.Fprintf(&mixed, "%d,1,1,1\n", (i*37)%100)
	}
	tr, err := Open(file(t, "a.csv", sorted.String()), Options{SortRows: 10})
	if err != nil || tr.Len() >= 0 {
		t.Fatalf("%+v %v", tr, err)
	}
	for range 2 { // again and again
		if rows := rowsOf(t, tr); len(rows) != 100 || rows[99].Arrival != 49*time.Second {
			t.Errorf("%d rows", len(rows))
		}
	}
	path := file(t, "b.csv", mixed.String())
	if tr, err = Open(path, Options{SortRows: 10}); err != nil {
		t.Fatal(err)
	}
	var failed error
	for _, err := range tr.Rows() {
		failed = err
	}
	if failed == nil || !strings.Contains(failed.Error(), "b.csv:5: arrives before the row above it") ||
		!strings.Contains(failed.Error(), "sort -t, -s -k1,1n") || !strings.Contains(failed.Error(), "-sort-rows") {
		t.Errorf("error %v", failed)
	}
	if tr, err = Open(path, Options{SortRows: 100}); err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(t, tr)
	if !slices.IsSortedFunc(rows, func(a, b trace.Row) int { return int(a.Arrival - b.Arrival) }) {
		t.Error("not sorted in memory")
	}
}

func TestBadTraces(t *testing.T) {
	f := func(format, text, want string) {
		t.Helper()
		_, err := Open(file(t, "a.csv", text), Options{Format: format})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	head := "arrival,duration,cpu,memory,gpus,share,count,priority,gang,tenant,reclaim\n"
	f("", "", "is empty; its first line must name the columns: openb has name,cpu_milli,")
	f("", "", "; simple has arrival,duration,[count],cpu,memory,")
	f(FormatSimple, "", "must name the columns: arrival,duration,[count],cpu,memory,")
	f("", "arrival,duration,cpu,memory,priorty\n0,1,1,1,9\n", `a.csv:1:29: column "priorty": is not known; did you mean "priority"? (there are arrival,`)
	f("", "arrival,duration,cpu,memory,shoe size\n0,1,1,1,9\n", `column "shoe size": is not known (there are arrival,`)
	f("", "a,b\n1,2\n", "a.csv:1: no known trace: its columns are a,b; openb has name,")
	f(FormatSimple, "arrival,cpu\n1,2\n", "a.csv:1: missing columns: duration, memory; the first line must name arrival,duration,[count],cpu,memory")
	f(FormatPhilly, "timestamp,cluster\n", "missing columns: duration, num_gpus")
	f(FormatOpenB, "name,cpu_milli\n", "missing columns: memory_mib, num_gpu, gpu_milli")
	f("swf", head, `format "swf": must be auto, openb, philly, simple`)
	f("", head, "has no rows after the names")
	f("", "arrival,duration,cpu,memory,cpu\n", `a.csv:1:29: column "cpu" stands twice`)
	f("", head+"0,-5,1,1,0,,1,,,,\n", `a.csv:2:3: duration "-5": must be seconds from 0 to`)
	f("", head+"0,NaN,1,1,0,,1,,,,\n", `a.csv:2:3: duration "NaN": must be seconds`)
	f("", head+",5,1,1,0,,1,,,,\n", "a.csv:2:1: arrival: must be stated")
	f("", head+"-1,5,1,1,0,,1,,,,\n", `a.csv:2:1: arrival "-1"`)
	f("", head+"0,5,1,1,0,,-2,,,,\n", `a.csv:2:12: count "-2": must be a whole number from 1 to 1000000`)
	f("", head+"0,5,1,1,0,,1.5,,,,\n", `count "1.5": must be a whole number`)
	f("", head+"0,5,-1,1,0,,1,,,,\n", `cpu "-1"`)
	f("", head+"0,5,1,x,0,,1,,,,\n", `memory "x"`)
	f("", head+"0,5,1,1,1,0,1,,,,\n", `share "0": must be a whole number from 1 to 1000`)
	f("", head+"0,5,1,1,2,500,1,,,,\n", "a.csv:2: share 500: a part of a GPU is requested with gpus 1, not 2")
	f("", head+"0,5,1,1,0,,1,101,,,\n", `priority "101": must be a whole number from 1 to 100`)
	f("", head+"0,5,1,1,0,,1,,maybe,,\n", `gang "maybe": must be true or false`)
	f("", head+"0,5,1,1,0,,1,,,a b,\n", `tenant "a b": must be letters`)
	f("", head+"0,5,1,1,0,,1,,,,kill\n", `reclaim "kill": must be`)
	f("", head+"0,5\n", "a.csv:2: wrong number of fields: the line has 2, the first line names 11 columns")
	f("", head+"0,5,\"1,1,0,,1,,,,\n", "a.csv:2:19: extraneous or missing")
	f("", "timestamp,duration,num_gpus\n2017-13-09 07:01:55,1,1\n", `a.csv:2:1: timestamp "2017-13-09 07:01:55": must be of the form`)
	f("", "timestamp,duration,num_gpus\n2017-10-09 07:01:55,-1,1\n", `a.csv:2:21: duration "-1"`)
	f("", strings.Replace(openbText, "100,400,150", "100,140,150", 1), "deletion_time 140: is before the task began (150 s)")
	f("", "arrival,duration"+strings.Repeat("x", 2<<20), "a line has over")
	f("", "\x1f\x8bnonsense", "gzip")
	if _, err := Open(filepath.Join(t.TempDir(), "none.csv"), Options{}); err == nil || !strings.Contains(err.Error(), "none.csv") {
		t.Errorf("error %v for a file that there is not", err)
	}
}

// Columns that nobody reads: one's own begin with x-, and files of others have more.
func TestOtherColumns(t *testing.T) {
	for _, text := range []string{
		"arrival,duration,cpu,memory,x-Note,\n0,1,1,1,hello,\n",
		"timestamp,duration,num_gpus,user\n2017-10-09 07:01:55,66.0,1,me\n",
		"name,cpu_milli,memory_mib,num_gpu,gpu_milli,qos\np-0,6000,12288,1,460,LS\n",
	} {
		if tr, err := Open(file(t, "a.csv", text), Options{GPUsPerNode: 8}); err != nil || tr.Len() != 1 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestOrder(t *testing.T) {
	tr, err := Open(file(t, "a.csv", simpleText), Options{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := OpenOrder(file(t, "o.csv", "seed,pos,row\n7,0,1\n7,1,1\n7,2,0\n8,0,0\n"), tr.Len())
	if err != nil || len(o) != 2 {
		t.Fatalf("%v %v", o, err)
	}
	var names []string
	for row, err := range tr.InOrder(o[7]) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, row.Name)
		if row.Duration != trace.Forever || row.Arrival != time.Duration(len(names)-1)*time.Second {
			t.Errorf("%+v", row)
		}
	}
	if !slices.Equal(names, []string{"first", "first", "second"}) {
		t.Errorf("order %v", names)
	}
	f := func(text, want string) {
		t.Helper()
		if _, err := OpenOrder(file(t, "o.csv", text), 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	f("seed,row\n", "missing columns: pos")
	f("seed,pos,row\n", "has no rows")
	f("seed,pos,row\n1,1,0\n", "o.csv:2:3: pos 1: must be 0, the next of seed 1")
	f("seed,pos,row\n1,0,2\n", `o.csv:2:5: row "2": must be a whole number from 0 to 1`)

	drawn := func(seed uint64) (out []string) {
		for row, err := range tr.Drawn(seed) {
			if err != nil {
				t.Fatal(err)
			}
			if out = append(out, row.Name); len(out) == 40 {
				return out
			}
		}
		return out
	}
	if a, b, c := drawn(1), drawn(1), drawn(2); !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Errorf("drawn %v, %v, %v", a, b, c)
	}
}

func TestNodes(t *testing.T) {
	nodes, err := OpenNodes(file(t, "n.csv", "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,32000,1024,0,\n"))
	if err != nil || len(nodes) != 2 {
		t.Fatalf("%v %v", nodes, err)
	}
	r := nodes[0].NodeResources
	if nodes[0].ID != "n0" || r.Cpu.CpuShares != 64000 || r.Memory.MemoryMB != 262144 || len(r.Devices[0].Instances) != 2 || r.Devices[0].Name != "P100" {
		t.Errorf("%+v", r)
	}
	if MostGPUs(nodes) != 2 || len(nodes[1].NodeResources.Devices) != 0 {
		t.Errorf("%d GPUs at most", MostGPUs(nodes))
	}
	nodes, err = OpenNodes("../../examples/trace-nodes.hcl")
	if err != nil || len(nodes) != 6 || MostGPUs(nodes) != 8 {
		t.Fatalf("%d nodes, %v", len(nodes), err)
	}
	f := func(text, want string) {
		t.Helper()
		if _, err := OpenNodes(file(t, "n.csv", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	f("a,b\n", "missing columns: sn, cpu_milli, memory_mib, gpu; the first line must name sn,cpu_milli,memory_mib,gpu,[model]; or use a file of node shapes")
	f("sn,cpu_milli,memory_mib,gpu,model\n", "has no nodes")
	f("sn,cpu_milli,memory_mib,gpu,model\na,1,1,1,\n", "n.csv:2:9: model \"\": a node with GPUs has one model")
	f("sn,cpu_milli,memory_mib,gpu,model\na,1,1,0,\na,1,1,0,\n", `n.csv:3:1: sn "a": stands in line 2 too`)
	f("sn,cpu_milli,memory_mib,gpu,model\na,-1,1,0,\n", `n.csv:2:3: cpu_milli "-1"`)

	ranks, err := OpenRanks(file(t, "r.csv", "seed,node,rank\n42,n0,7\n"))
	if err != nil || ranks[42]["n0"] != 7 {
		t.Errorf("%v %v", ranks, err)
	}
	if _, err = OpenRanks(file(t, "r.csv", "seed,node\n")); err == nil || !strings.Contains(err.Error(), "missing columns: rank") {
		t.Errorf("error %v", err)
	}
}

// fuzz reads whatever comes in a format: rows that are read are right.
func fuzz(f *testing.F, format, seed string) {
	f.Add(seed)
	f.Add(strings.Split(seed, "\n")[0] + "\n-1,1e300,NaN\n")
	f.Fuzz(func(t *testing.T, text string) {
		tr := &Trace{Path: "f.csv", Format: format, o: Options{GPUsPerNode: 8}}
		err := tr.each(strings.NewReader(text), func(x readRow) error { return x.row.Validate() })
		if err != nil && !strings.HasPrefix(err.Error(), "f.csv") {
			t.Errorf("error %q does not name the file", err)
		}
	})
}

func FuzzSimple(f *testing.F) { fuzz(f, FormatSimple, simpleText) }
func FuzzOpenB(f *testing.F)  { fuzz(f, FormatOpenB, openbText) }
func FuzzPhilly(f *testing.F) { fuzz(f, FormatPhilly, phillyText) }

func FuzzOrder(f *testing.F) {
	f.Add("seed,pos,row\n42,0,1\n42,1,0\n")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := readOrder("f.csv", strings.NewReader(text), 2)
		for seed, rows := range o {
			if slices.ContainsFunc(rows, func(r int32) bool { return r < 0 || r > 1 }) {
				t.Errorf("seed %d: %v", seed, rows)
			}
		}
		if (err == nil) == (len(o) == 0) {
			t.Errorf("%v, %v", o, err)
		}
	})
}

func FuzzNodes(f *testing.F) {
	f.Add("sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\n")
	f.Fuzz(func(t *testing.T, text string) {
		if nodes, err := readNodes("f.csv", strings.NewReader(text)); err == nil && MostGPUs(nodes) > trace.MaxGPUs {
			t.Errorf("a node has %d GPUs", MostGPUs(nodes))
		}
	})
}
