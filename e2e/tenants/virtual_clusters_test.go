package tenants

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// threeTeams starts an agent with the nodes and the teams of docs/guides/virtual-clusters.md.
func threeTeams(t *testing.T) *harness.Agent {
	t.Helper()
	path, err := filepath.Abs("../../examples/virtual-clusters/nodes.hcl")
	if err != nil {
		t.Fatal(err)
	}
	a := harness.NewAgent(t, true, fmt.Sprintf("client {\n  enabled = true\n  simulate = %q\n}\n", path))
	a.Start()
	a.WaitReady(4)
	for _, team := range []string{"vision", "speech", "students"} {
		harness.CheckOutput(t, a, 0, "namespace apply "+team, `Successfully applied namespace "`+team+`"!`)
		harness.CheckOutput(t, a, 0, "vc apply ../../examples/virtual-clusters/"+team+".hcl", `Successfully applied virtual cluster "`+team+`"!`)
	}
	return a
}

// TestVirtualClustersGuide walks docs/guides/virtual-clusters.md.
func TestVirtualClustersGuide(t *testing.T) {
	t.Parallel()
	a := threeTeams(t)
	const dir = "../../examples/virtual-clusters/"
	harness.CheckOutput(t, a, 0, "vc list",
		"Name      Over Limit     Points  Cells     Bound  Doomed  GPUs Used  Lent  Pending Edit",
		"speech    ask            0       1 node    0      0       0 of 8     0     no",
		"students  opportunistic  0       1 socket  0      0       0 of 4     0     no",
		"vision    opportunistic  0       2 node    0      0       0 of 16    0     no")

	// Nothing idles: all 32 run, 4 of them by what the team owns.
	harness.CheckOutput(t, a, 0, "job run -detach "+dir+"sweep.nomad.hcl")
	harness.WaitOutput(t, a, "vc status students", "nvidia/gpu/H100  socket  1      0    1      0     0    0       4 of 4     0", "sweep.run[0-3]",
		"Borrowed 28 GPUs outside the bound cells of others")

	// An owner comes, twice. What remains of the notebook's node stays lent.
	harness.CheckOutput(t, a, 0, "job run -detach "+dir+"notebook.nomad.hcl")
	harness.CheckOutput(t, a, 0, "job run -detach "+dir+"train.nomad.hcl")
	harness.WaitOutput(t, a, "vc status vision", "nvidia/gpu/H100  node   2      0    2      0     0    0       10 of 16   6", "notebook.w[0]  students sweep.run (6)", "train.w[0]")
	harness.CheckOutput(t, a, 0, "vc status students", "4 of 4", "Borrowed 18 GPUs: sweep.run[", "(cell of vision), 12 outside the bound cells of others")
	harness.WaitOutput(t, a, "job status -namespace students sweep", "Lost  Unknown  Requeued\n", "run         10      0         22       0       0         0     0        10\n")
	harness.CheckOutput(t, a, 0, "queue -namespace students", "sweep")
	harness.CheckOutput(t, a, 0, "queue -namespace *", "Namespace", "Share")
	harness.CheckOutput(t, a, 0, "vc list", "vision    opportunistic  0       2 node    2      0       10 of 16   6     no")
	harness.CheckOutput(t, a, 0, "topology", "  owner vision  8 × nvidia/gpu/H100", " vision/notebook.w[0] (guaranteed)\n", "] (lent)\n", "vision    16     16     10          6\n")
	harness.WaitOutput(t, a, "operator metrics -format prometheus", `nomad_nomad_virtual_cluster_gpus_lent{`, `namespace="vision",node_pool="default",kind="nvidia/gpu/H100"} 6`)

	// Who may not borrow without being asked, and who cannot own.
	const text = `job %q {
  %s
  group "w" {
    count = %d
    task "t" {
      driver = "mock_driver"
      config { run_for = "1h" }
      resources {
        device "nvidia/gpu" {}
      }
    }
  }
}`
	talk := func(count int) string {
		return a.JobFile("talk", fmt.Sprintf(text, "talk", `namespace = "speech"`, count))
	}
	sure := fmt.Sprintf(text, "sure", `class = "guaranteed"`, 1)
	harness.CheckOutput(t, a, 1, "job run -detach "+talk(9), `it requests more than namespace "speech" owns (8 GPUs, 0 in guaranteed use)`)
	harness.CheckOutput(t, a, 0, "job run -detach "+talk(2))
	harness.CheckOutput(t, a, 1, "job scale -detach -namespace speech talk 9", "8 GPUs, 2 in guaranteed use", "-opportunistic")
	harness.CheckOutput(t, a, 0, "job stop -purge -detach -namespace speech talk")
	harness.CheckOutput(t, a, 1, "job run "+a.JobFile("sure", sure), `class is "guaranteed", but namespace "default" owns nothing`)

	// What several tasks of an instance request is guaranteed together; what cannot be owned is not waited for.
	task := func(name, resources string) string {
		return fmt.Sprintf("task %q {\n driver = \"mock_driver\"\n config { run_for = \"1h\" }\n resources {\n%s\n}\n}\n", name, resources)
	}
	own := func(tasks ...string) string {
		return a.JobFile("pair", fmt.Sprintf("job \"pair\" {\n namespace = \"vision\"\n class = \"guaranteed\"\n group \"w\" {\n%s}\n}", strings.Join(tasks, "")))
	}
	harness.CheckOutput(t, a, 1, "job run "+own(task("a", "cpu = 100")), `group "w" can use no claim: it requests no whole GPUs: only whole GPUs are owned (leave class out`)
	harness.CheckOutput(t, a, 0, "job run -detach "+own(task("a", "device \"nvidia/gpu\" {}"), task("b", "device \"nvidia/gpu\" {}")))
	harness.WaitOutput(t, a, "vc status vision", "12 of 16", "pair.w[0]")
	harness.CheckOutput(t, a, 0, "job stop -purge -detach -namespace vision pair")
	harness.WaitOutput(t, a, "vc status vision", "10 of 16")

	// What can have no claim by what it requests is warned of.
	heavy := "cpu = 48000\ndevice \"nvidia/gpu\" {}"
	harness.CheckOutput(t, a, 0, "job run -detach "+own(task("a", heavy)), `group "w": it requests 48000 MHz of 32000 that belong to its GPUs, and waits as class is "guaranteed"`)
	harness.WaitOutput(t, a, "job explain -namespace vision pair", "beyond the share: it requests 48000 MHz of 32000 that belong to its GPUs")
	harness.CheckOutput(t, a, 0, "job stop -purge -detach -namespace vision pair")

	// It ends, and nothing idles again.
	harness.CheckOutput(t, a, 0, "job stop -detach -namespace vision train")
	harness.WaitOutput(t, a, "vc status students", "Borrowed 26 GPUs")

	// Who owns too little is asked, and told what waits.
	harness.CheckOutput(t, a, 1, "job run -detach "+dir+"decode.nomad.hcl", "8 GPUs, 0 in guaranteed use", "-opportunistic")
	harness.CheckOutput(t, a, 0, "job run -detach -opportunistic "+dir+"decode.nomad.hcl")
	harness.WaitOutput(t, a, "vc status speech", "8 of 8", "decode.run[0-7]")

	// What cannot be given is refused by its level; what is in use cannot be deleted.
	three := a.JobFile("three", "virtual_cluster \"vision\" {\n  cells {\n    level = \"node\"\n    count = 3\n  }\n}\n")
	none := a.JobFile("none", "virtual_cluster \"students\" {}\n")
	harness.CheckOutput(t, a, 1, "vc apply "+three, `virtual cluster "vision": level node: 1 short`)
	harness.CheckOutput(t, a, 0, "vc apply -when-free "+three, `The edit of virtual cluster "vision" is pending: level node: 1 short`)
	harness.CheckOutput(t, a, 0, "vc status vision", "Pending = node 3 (level node: 1 short)")
	harness.CheckOutput(t, a, 1, "vc delete students", "4 allocations use its cells")
	harness.CheckOutput(t, a, 0, "vc apply "+none, "Successfully applied")
	harness.WaitOutput(t, a, "vc status students", "It owns no cells", "Borrowed 22 GPUs")
	harness.CheckOutput(t, a, 0, "vc delete students", "Successfully deleted")
	harness.CheckOutput(t, a, 1, "vc status students", "no virtual cluster has a name that starts with")
	harness.WaitOutput(t, a, "vc list", "vision  opportunistic  0       3 node ") // what was pending is admitted
	harness.CheckOutput(t, a, 1, "vc apply "+dir+"students.hcl", "level socket: 1 short")
	harness.CheckOutput(t, a, 0, "vc apply "+dir+"vision.hcl")
	guideOfTimes(t, a)
	a.CheckState()
}

// guideOfTimes walks the rest of the guide: a drain, other times, and how to clean up.
func guideOfTimes(t *testing.T, a *harness.Agent) {
	t.Helper()
	vision, _, err := a.API.VirtualClusters().Info(t.Context(), "vision", nil)
	if err != nil || len(vision.Bound) != 1 {
		t.Fatalf("%+v, %v", vision, err)
	}
	cell := vision.Bound[0].Cell
	harness.CheckOutput(t, a, 0, "node drain -enable -detach -yes -deadline "+harness.Scaled(3*time.Second).String()+" "+cell)
	harness.WaitOutput(t, a, "vc status vision", cell+" (away)  notebook.w[0]")
	harness.WaitOutput(t, a, "vc status vision", "H100  node   2      0    1 ", "notebook.w[0]")
	harness.Within(t, 20*time.Second, "the end of the drain", func(context.Context) error { return harness.TryOutput(a, 0, "node eligibility -enable "+cell) })

	const shift = "vc shift -level node -count 1 "
	harness.CheckOutput(t, a, 0, shift+"-from 2126-12-24 -until 2126-12-27 -to 2127-01-04 -until-to 2127-01-07 vision", "owns 1 cell of level node fewer from 2126-12-24")
	harness.CheckOutput(t, a, 0, "vc status vision", "shift   2126-12-24  2126-12-27  node -1  back at 2126-12-27", "shift   2127-01-04  2127-01-07  node +1")
	harness.CheckOutput(t, a, 0, shift+"-from 2127-01-04 -until 2127-01-07 -to 2126-12-24 -until-to 2126-12-27 vision", "fewer from 2127-01-04")
	harness.CheckOutput(t, a, 0, "vc points speech 10", "has 10 points.")
	from := time.Now().UTC().Add(harness.Scaled(3 * time.Second)).Truncate(time.Second)
	back := from.Add(harness.Scaled(2 * time.Second)).Truncate(time.Second)
	when := fmt.Sprintf("-level node -count 1 -from %s -until %s ", from.Format(time.RFC3339), back.Format(time.RFC3339))
	harness.CheckOutput(t, a, 0, "vc offer "+when+"vision", `of virtual cluster "vision"; it is settled at `)
	harness.CheckOutput(t, a, 0, "vc bid -points 3 "+when+"speech", `of virtual cluster "speech"; it is settled at `)
	harness.CheckOutput(t, a, 0, "vc exchanges", "offer  vision  nvidia/gpu/H100  node   1 ", "bid    speech  nvidia/gpu/H100  node   1      3 ")
	harness.CheckOutput(t, a, 0, "vc status vision", "Change  From ", "offer   "+from.Format("2006-01-02"), "not settled yet", "H100  node   2      0 ")
	harness.WaitOutput(t, a, "vc exchanges", "No offers and bids", "Settled", "vision      speech    nvidia/gpu/H100  node   1      3       ")
	harness.WaitOutput(t, a, "vc list", "speech  ask            7       2 node (until ", "12 of 16", "vision  opportunistic  3       1 node (until ")
	harness.WaitOutput(t, a, "vc list", "speech  ask            7       1 node  1 ", "vision  opportunistic  3       2 node  1 ")

	for _, job := range []string{"vision notebook", "vision train", "speech decode", "students sweep"} {
		harness.CheckOutput(t, a, 0, "job stop -purge -detach -namespace "+job)
	}
	for _, team := range []string{"vision", "speech", "students"} {
		if team != "students" {
			harness.Within(t, 20*time.Second, "nothing is used", func(context.Context) error { return harness.TryOutput(a, 0, "vc delete "+team) })
		}
		harness.Within(t, 20*time.Second, "nothing runs", func(context.Context) error { return harness.TryOutput(a, 0, "namespace delete "+team) })
	}
	harness.CheckOutput(t, a, 0, "vc list", "No virtual clusters")
}

// TestVirtualClustersOverHTTP: what programs do with virtual clusters, and what they may not.
func TestVirtualClustersOverHTTP(t *testing.T) {
	t.Parallel()
	a := threeTeams(t)
	vcs := a.API.VirtualClusters()
	list, meta, err := vcs.List(t.Context(), nil)
	if err != nil || len(list) != 3 || list[2].Name != "vision" || list[2].Cells[0].GPUs != 16 || list[2].Cells[0].Kind != "nvidia/gpu/H100" {
		t.Fatalf("%+v, %v", list, err)
	}
	woken := make(chan error, 1)
	go func() {
		_, later, err := vcs.Info(t.Context(), "speech", &api.Query{Index: meta.Index, Wait: time.Minute})
		if err == nil && later.Index <= meta.Index {
			err = fmt.Errorf("came back at index %d, begun at %d", later.Index, meta.Index)
		}
		woken <- err
	}()
	speech, _, err := vcs.Info(t.Context(), "speech", nil)
	if err != nil {
		t.Fatal(err)
	}
	less := &structs.VirtualCluster{Name: "speech", Cells: []*structs.CellQuota{{Level: "socket", Count: 2}}}
	if _, err := vcs.Register(t.Context(), less, api.VirtualClusterEdit{CAS: true, CheckIndex: speech.ModifyIndex + 1}); harness.HTTPStatus(err) != http.StatusConflict {
		t.Errorf("an edit of another state: %v", err)
	}
	index, err := vcs.Register(t.Context(), less, api.VirtualClusterEdit{CAS: true, CheckIndex: speech.ModifyIndex})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-woken; err != nil {
		t.Errorf("a blocking query: %v", err)
	}
	if speech, _, err = vcs.Info(t.Context(), "speech", nil); err != nil || speech.ModifyIndex != index || speech.Cells[0].Level != "socket" || speech.Cells[0].Given != 2 {
		t.Errorf("after index %d: %+v, %v", index, speech, err)
	}
	f := func(want int, method, path, body, text string) {
		t.Helper()
		resp, err := a.API.Send(t.Context(), method, path, nil, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		reported, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want || !strings.Contains(string(reported), text) {
			t.Errorf("%s %s %s: %d %s, want %d with %q", method, path, body, resp.StatusCode, reported, want, text)
		}
	}
	f(404, "GET", "/v1/virtual-cluster/default", "", "virtual cluster not found")
	f(400, "PUT", "/v1/virtual-cluster/nobody", `{"Cells":[{"Level":"node","Count":1}]}`, `namespace "nobody" does not exist`)
	f(400, "PUT", "/v1/virtual-cluster/vision", `{"Cells":[{"Level":"shelf","Count":1}]}`, `cells 1: level "shelf"`)
	f(400, "PUT", "/v1/virtual-cluster/vision", `{"Cells":[{"Level":"node","Count":1,"Kind":"nvidia/gpu/H9"}]}`, `kind "nvidia/gpu/H9"`)
	f(400, "PUT", "/v1/virtual-cluster/vision", `{"Cells":[{"Level":"node","Count":1,"Pin":["dgx-9"]}]}`, `pin "dgx-9"`)
	f(400, "PUT", "/v1/virtual-cluster/vision", `{"Name":"speech"}`, `does not match "vision"`)
	f(400, "PUT", "/v1/virtual-cluster/vision", `{"Cells":[{"Level":"node","Given":2}]}`, `cells 1: count is missing`)
	f(409, "PUT", "/v1/virtual-cluster/default?cas=0", `{"Cells":[{"Level":"node","Count":2}]}`, "level socket: 3 short")
	f(409, "PUT", "/v1/virtual-cluster/vision?cas=0", `{}`, "last changed at index")
	f(200, "POST", "/v1/virtual-cluster/default?cas=0", `{"Cells":[{"Level":"socket","Count":1}]}`, "")
	f(200, "DELETE", "/v1/virtual-cluster/default", "", "")
	f(404, "DELETE", "/v1/virtual-cluster/default", "", "default")
	f(409, "DELETE", "/v1/namespace/vision", "", "")
}

// TestVirtualClustersExchange: an offer meets a bid, the cells change hands for points, and return.
func TestVirtualClustersExchange(t *testing.T) {
	t.Parallel()
	a := threeTeams(t)
	harness.CheckOutput(t, a, 0, "vc points students 5", `Virtual cluster "students" has 5 points.`)
	harness.CheckOutput(t, a, 0, "vc points students -1", "has 4 points.")
	harness.CheckOutput(t, a, 1, "vc points students -5", "4 points")
	from := time.Now().UTC().Add(harness.Scaled(3 * time.Second)).Truncate(time.Second)
	when := fmt.Sprintf("-level node -from %s -until %s ", from.Format(time.RFC3339), from.Add(harness.Scaled(3*time.Second)).Truncate(time.Second).Format(time.RFC3339))
	harness.CheckOutput(t, a, 1, "vc offer -count 2 "+when+"speech", `virtual cluster "speech" owns 1 such cell neither pinned nor offered`)
	harness.CheckOutput(t, a, 0, "vc offer "+when+"vision", "Successfully made offer")
	harness.CheckOutput(t, a, 1, "vc bid -points 5 "+when+"students", "has 4 points, too few for 1 cell at 5 points each")
	harness.CheckOutput(t, a, 0, "vc bid -points 3 "+when+"students", "Successfully made bid")
	const later = "-level node -from 2126-12-24 -until 2126-12-27 "
	harness.CheckOutput(t, a, 1, "vc shift "+later+"-to 2127-01-04 -until-to 2127-01-07 vision", "level socket: 1 short from 2127-01-04") // all nodes are owned then
	harness.CheckOutput(t, a, 0, "vc delete speech", "")
	harness.CheckOutput(t, a, 0, "vc shift "+later+"-to 2127-01-04 -until-to 2127-01-07 vision", `Virtual cluster "vision" owns 1 cell of level node fewer from 2126-12-24`)
	harness.CheckOutput(t, a, 0, "vc status vision", "Change  From ", "offer   "+from.Format(time.DateOnly), "not settled yet", "shift   2126-12-24 ", "node -1  back at 2126-12-27", "shift   2127-01-04 ")
	harness.CheckOutput(t, a, 1, "vc shift "+later+"-to 2127-01-04 -until-to 2127-01-08 vision", "must not gain cell-hours")
	harness.CheckOutput(t, a, 0, "vc exchanges", "offer", "vision", "bid", "students")
	harness.WaitOutput(t, a, "vc list", "students  opportunistic  1       1 socket, 1 node", "vision    opportunistic  3       1 node")
	harness.CheckOutput(t, a, 0, "vc exchanges", "No offers and bids")
	harness.WaitOutput(t, a, "vc list", "students  opportunistic  1       1 socket  0", "vision    opportunistic  3       2 node    0")
}
