package structs

import "time"

// Requests that a server passes on to the client that holds the allocation.
type (
	// ClientAllocRequest names an allocation, maybe a task of it.
	ClientAllocRequest struct {
		AllocID string
		Task    string
		Signal  string
		// AllTasks: restart those too that have ended.
		AllTasks bool
		QueryOptions
	}
	// ClientStatsReply is an allocation's usage of resources.
	ClientStatsReply struct {
		Stats *AllocResourceUsage
		QueryMeta
	}
	// ClientHostStatsRequest requests a node's resource usage; empty: the one called.
	ClientHostStatsRequest struct {
		NodeID string
		QueryOptions
	}
	// ClientHostStatsReply is a node's usage.
	ClientHostStatsReply struct {
		Stats *HostStats
		QueryMeta
	}
	// FSRequest reads an allocation's files. Path is inside the allocation's directory.
	FSRequest struct {
		AllocID string
		Path    string
		Offset  int64
		Limit   int64  // 0: all
		Origin  string // start or end
		Follow  bool
		// Logs: read the task's log instead of Path.
		Task      string
		LogType   string // stdout or stderr
		PlainText bool   // no framing (handled by the HTTP layer)
		QueryOptions
	}
	// FSListReply lists a directory.
	FSListReply struct {
		Files []*AllocFileInfo
		QueryMeta
	}
	// FSStatReply is one file's facts.
	FSStatReply struct {
		Info *AllocFileInfo
		QueryMeta
	}
	// StreamFrame is one piece of a followed file, as Nomad frames it in JSON.
	StreamFrame struct {
		Offset    int64  `json:",omitempty"`
		Data      []byte `json:",omitempty"`
		File      string `json:",omitempty"`
		FileEvent string `json:",omitempty"`
	}
	// AllocFileInfo is a file's facts.
	AllocFileInfo struct {
		Name        string
		IsDir       bool
		Size        int64
		FileMode    string
		ModTime     time.Time
		ContentType string `json:",omitempty"`
	}
	// AllocResourceUsage is an allocation's usage of resources. JSON names are Nomad's.
	AllocResourceUsage struct {
		ResourceUsage *ResourceUsage
		Tasks         map[string]*TaskResourceUsage
		Timestamp     int64
	}
	// TaskResourceUsage is a task's usage.
	TaskResourceUsage struct {
		ResourceUsage *ResourceUsage
		Timestamp     int64
		Pids          map[string]*ResourceUsage
	}
	// ResourceUsage is use of memory and processor.
	ResourceUsage struct {
		MemoryStats *MemoryStats
		CpuStats    *CpuStats
	}
	// MemoryStats is in bytes.
	MemoryStats struct {
		RSS, Cache, Swap, Usage, MaxUsage, KernelUsage, KernelMaxUsage uint64
		Measured                                                       []string
	}
	// CpuStats is in percent of one core and MHz (TotalTicks).
	CpuStats struct {
		SystemMode, UserMode, TotalTicks, Percent float64
		ThrottledPeriods, ThrottledTime           uint64
		Measured                                  []string
	}
	// HostStats is a node's usage. JSON names are Nomad's.
	HostStats struct {
		Memory           *HostMemoryStats
		CPU              []*HostCPUStats
		DiskStats        []*HostDiskStats
		AllocDirStats    *HostDiskStats
		Uptime           uint64
		CPUTicksConsumed float64
		Timestamp        int64
	}
	// HostMemoryStats is in bytes.
	HostMemoryStats struct{ Total, Available, Used, Free uint64 }
	// HostCPUStats is in percent.
	HostCPUStats struct {
		CPU                                     string
		User, System, Idle, TotalPercent, Total float64
	}
	// HostDiskStats is in bytes.
	HostDiskStats struct {
		Device, Mountpoint             string
		Size, Used, Available          uint64
		UsedPercent, InodesUsedPercent float64
	}
)
