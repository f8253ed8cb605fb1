package harness

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// GangJob is a service of one group of count pretended instances, that are a gang. more is put into the group, device into
// the device block; without gpus there is none.
func GangJob(id string, count, gpus int, gang, more, device string) string {
	request := ""
	if gpus > 0 {
		request = fmt.Sprintf("device \"nvidia/gpu\" {\n          count = %d\n          %s\n        }", gpus, device)
	}
	return fmt.Sprintf(`job %q {
  group "g" {
    count = %d
    gang {
      %s
    }
    %s
    network {
      port "p" {}
    }
    task "t" {
      driver = "mock_driver"
      config { run_for = "24h" }
      resources {
        cpu    = 100
        memory = 64
        %s
      }
    }
  }
}`, id, count, gang, more, request)
}

// OneRack is the block of a group whose instances must be in one rack.
const OneRack = "topology {\n      level    = \"rack\"\n      required = true\n    }"

// GangLayout is a kind of gang.
type GangLayout struct {
	GPUs  []int // of each member
	Min   int   // 0: all
	Rack  bool  // all of it in one rack
	PCIe  bool  // each member's GPUs under one switch
	Count int   // how many of the 500 are such
}

// Job returns a job of gangs: a group for each size of its members.
func (s GangLayout) Job(id string) *structs.Job {
	job := &structs.Job{ID: id, Type: structs.JobTypeService}
	for _, size := range slices.Compact(slices.Clone(s.GPUs)) {
		request := &structs.RequestedDevice{Name: "nvidia/gpu", Count: size}
		if s.PCIe {
			request.Topology = &structs.TopologyConstraint{Level: structs.LevelPCIe, Required: true}
		}
		g := &structs.TaskGroup{Name: "g" + strconv.Itoa(size), Gang: &structs.Gang{Min: s.Min}, Tasks: []*structs.Task{{
			Name: "t", Driver: "mock_driver", Config: map[string]any{"run_for": "24h"},
			Resources: &structs.Resources{CPU: 100, MemoryMB: 64, Devices: []*structs.RequestedDevice{request}},
		}}}
		for _, n := range s.GPUs {
			if n == size {
				g.Count++
			}
		}
		if s.Rack {
			g.Topology = &structs.TopologyConstraint{Level: "rack", Required: true}
		}
		for _, other := range job.TaskGroups {
			other.Gang.Groups = append(other.Gang.Groups, g.Name)
		}
		job.TaskGroups = append(job.TaskGroups, g)
	}
	job.Canonicalize()
	return job
}

// ProcessJob returns a job of one real process, a shell script, that takes the whole processor. more goes into the job, task into its task.
func ProcessJob(id string, priority int, more, task, script string) string {
	return fmt.Sprintf(`job %q {
  priority = %d
  %s
  group "g" {
    ephemeral_disk { size = 10 }
    restart {
      attempts = 0
      mode     = "fail"
    }
    task "t" {
      driver = "raw_exec"
      %s
      config {
        command = "/bin/bash"
        args    = ["-c", <<EOT
%s
EOT
        ]
      }
      logs {
        max_files     = 1
        max_file_size = 1
      }
      resources {
        cpu    = 1000
        memory = 16
      }
    }
  }
}`, id, priority, more, task, script)
}

// MockJob is a job of pretended instances.
type MockJob struct {
	ID                           string
	Kind                         string // default: service
	Priority, Count, CPU, Memory int
	Job, Group                   string // more of each
	config                       string // of the task; default: it runs for long
}

// Text returns the job's file.
func (v MockJob) Text() string {
	kind, config := v.Kind, v.config
	if kind == "" {
		kind = structs.JobTypeService
	}
	if config == "" {
		config = `run_for = "24h"`
	}
	return fmt.Sprintf(`job %q {
  type     = %q
  priority = %d
  %s
  group "g" {
    count = %d
    %s
    ephemeral_disk { size = 10 }
    task "t" {
      driver = "mock_driver"
      config {
        %s
      }
      logs {
        max_files     = 1
        max_file_size = 1
      }
      resources {
        cpu    = %d
        memory = %d
      }
    }
  }
}`, v.ID, kind, v.Priority, v.Job, v.Count, v.Group, config, v.CPU, v.Memory)
}

// SubmitMock registers a job and does not wait for what becomes of it.
func (a *Agent) SubmitMock(v MockJob) {
	a.T.Helper()
	a.Submit(v.ID, v.Text())
}

// WithResources returns the text of a job of ProcessJob whose task requests so much of a processor and memory.
func WithResources(text string, cpu, memory int) string {
	return strings.NewReplacer("cpu    = 1000", fmt.Sprintf("cpu    = %d", cpu), "memory = 16", fmt.Sprintf("memory = %d", memory)).Replace(text)
}
