package config

import (
	"time"

	"github.com/nomadish/nomadish/structs"
)

// Config is an agent's configuration. The hcl names are Nomad's, unless a
// comment states that they are ours.
type Config struct {
	Region      string  `hcl:"region"`     // the region that the agent belongs to
	Datacenter  string  `hcl:"datacenter"` // the data center of the agent; jobs name those that they may run in
	Name        string  `hcl:"name"`       // the agent's name in its region; default: the host's name
	DataDir     string  `hcl:"data_dir"`   // an absolute path: where the agent keeps its state; required, except with -dev
	BindAddr    string  `hcl:"bind_addr"`  // the address to listen on, for all ports that `addresses` does not state
	Logging     Logging `hcl:",inline"`
	EnableDebug bool    `hcl:"enable_debug"` // answers /debug/pprof, and requests for profiles and for the host's data
	Leaving     Leaving `hcl:",inline"`
	// Insecure (ours) lets the agent start although other machines can reach it without showing who they are.
	Insecure        bool              `hcl:"insecure"`
	ResponseHeaders map[string]string `hcl:"http_api_response_headers"` // headers to add to every answer of the HTTP API

	Ports     Ports              `hcl:"ports,block"`
	Addresses Addresses          `hcl:"addresses,block"`
	Advertise Addresses          `hcl:"advertise,block"`
	Server    Server             `hcl:"server,block"`
	Client    Client             `hcl:"client,block"`
	ACL       ACL                `hcl:"acl,block"`
	TLS       TLS                `hcl:"tls,block"`
	Telemetry Telemetry          `hcl:"telemetry,block"`
	Limits    Limits             `hcl:"limits,block"`
	HTTP      HTTP               `hcl:"http_config,block"` // ours
	Plugins   map[string]*Plugin `hcl:"plugin,block"`

	Autopilot   Autopilot   `hcl:"autopilot,block"`
	LaterBlocks LaterBlocks `hcl:",inline"`

	_ struct{} `inert:"plugin_dir,log_file,log_rotate_duration,log_rotate_bytes,log_rotate_max_files,enable_syslog,syslog_facility,keyring,consul,vault"`
	_ struct{} `moot:"disable_update_check,disable_anonymous_signature"`

	// Dev is the -dev flag: one process, in memory, on loopback.
	Dev     bool
	Sources Sources
}

// LaterBlocks are blocks of Nomad's of which little or nothing has an effect yet.
type LaterBlocks struct {
	RPC       rpc       `hcl:"rpc,block"`
	UI        ui        `hcl:"ui,block"`
	Sentinel  sentinel  `hcl:"sentinel,block"`
	Audit     audit     `hcl:"audit,block"`
	Reporting reporting `hcl:"reporting,block"`
	Eventlog  eventlog  `hcl:"eventlog,block"`
}

// Logging specifies what the agent logs.
type Logging struct {
	LogLevel string `hcl:"log_level"` // TRACE, DEBUG, INFO, WARN or ERROR
	LogJSON  bool   `hcl:"log_json"`  // writes each log line as a JSON object
	// LogLocation adds file and line to each log line.
	LogLocation bool `hcl:"log_include_location"`
}

// Leaving specifies when an agent that ends leaves the cluster for good.
type Leaving struct {
	LeaveOnInterrupt bool `hcl:"leave_on_interrupt"` // leaves the cluster for good when the agent gets SIGINT; a leader transfers leadership before
	LeaveOnTerminate bool `hcl:"leave_on_terminate"` // the same for SIGTERM
}

// Sources state where a configuration comes from.
type Sources struct {
	// Files are those that the configuration was read from, for people.
	Files []string

	origins  map[string]Problem
	unread   []string // the paths of what files state and has a problem
	unparsed bool     // of a file nothing could be read
}

// Ports are the ports to listen on; 0: any free one.
type Ports struct {
	HTTP         int  `hcl:"http"`          // of the HTTP API
	RPC          int  `hcl:"rpc"`           // of RPC and Raft
	Serf         int  `hcl:"serf"`          // of the gossip among the servers of a region, by TCP and UDP
	SerfWAN      *int `hcl:"serf_wan"`      // of the gossip with other regions; -1: off; default: 4649 if serf is 4648, else -1
	ClientGossip int  `hcl:"client_gossip"` // of the gossip of clients and servers, by TCP and UDP
}

// Addresses are those to listen on, in the place of bind_addr: hosts; or, in the block advertise, those by which others reach the agent: hosts
// with or without a port.
type Addresses struct {
	HTTP         string `hcl:"http"`          // of the HTTP API
	RPC          string `hcl:"rpc"`           // of RPC and Raft
	Serf         string `hcl:"serf"`          // of the gossip among the servers of a region
	SerfWAN      string `hcl:"serf_wan"`      // of the gossip with other regions; default: that of serf
	ClientGossip string `hcl:"client_gossip"` // of the gossip of clients and servers
}

// Server is the server's part.
type Server struct {
	Enabled           bool     `hcl:"enabled"`                   // whether the agent is a server
	BootstrapExpect   *int     `hcl:"bootstrap_expect"`          // how many servers bootstrap the cluster; default: 1 without an address to join, else 0: the server joins a cluster
	DataDir           string   `hcl:"data_dir"`                  // where the server keeps its state; default: server/ in the data_dir of the agent
	NumSchedulers     *int     `hcl:"num_schedulers"`            // how many workers decide evaluations; default: the machine's cores
	EnabledSchedulers []string `hcl:"enabled_schedulers,append"` // the types of jobs that the server's workers take; default: all

	RaftSettings
	ServerGC
	NodeHeartbeats
	DiskFull
	JobLimits
	Joining

	TrustUserHeader *bool `hcl:"trust_user_header"` // whether a request is of the user whom its header X-Nomadish-User states; default: true with -dev, else false

	EventBufferSize  int                    `hcl:"event_buffer_size"` // how many changes the event stream can still send to who connects later
	DefaultScheduler DefaultSchedulerConfig `hcl:"default_scheduler_config,block"`

	// Join specifies how to find the other servers, as Joining does.
	Join    Join   `hcl:"server_join,block"`
	Encrypt string `hcl:"encrypt"` // the key of the gossip among servers, in base64: 16, 24 or 32 bytes

	ClientGossip        *bool          `hcl:"client_gossip"`         // whether the server takes part in the clients' gossip; default: true, with -dev false
	ClientGossipEncrypt string         `hcl:"client_gossip_encrypt"` // the key of that gossip, in base64; never the one of encrypt
	ClientLiveness      ClientLiveness `hcl:"client_liveness,block"`

	// Topology and Scheduling are ours. They, and DefaultScheduler, seed the replicated
	// scheduler configuration of a new cluster.
	Topology   Topology   `hcl:"topology,block"`
	Scheduling Scheduling `hcl:"scheduling,block"`
	// Calendar (ours) seeds it, too: when weeks of projects' calendars begin.
	Calendar Calendar `hcl:"calendar,block"`

	// Forecast (ours) is how the server makes forecasts of the queue.
	Forecast Forecast `hcl:"forecast,block"`

	ClientIntroduction clientIntroduction   `hcl:"client_introduction,block"`
	PlanRejection      planRejectionTracker `hcl:"plan_rejection_tracker,block"`
	Search             search               `hcl:"search,block"`
	RaftLogStore       raftLogStore         `hcl:"raft_logstore,block"`
	RaftBoltDB         raftBolt             `hcl:"raft_boltdb,block"`

	_ struct{} `inert:"authoritative_region,protocol_version,raft_protocol,deployment_gc_threshold,csi_volume_claim_gc_interval,csi_volume_claim_gc_threshold,csi_plugin_gc_threshold,acl_token_gc_threshold,root_key_gc_interval,root_key_gc_threshold,root_key_rotation_threshold,non_voting_server,redundancy_zone,upgrade_version,license_path,deploy_query_rate_limit,oidc_issuer,start_timeout,log_file,non_production"`
	_ struct{} `moot:"plan_apply_pipeline,enable_event_broker"`
}

// RaftSettings configure how a server takes part in Raft; 0: the default.
type RaftSettings struct {
	RaftMultiplier        int           `hcl:"raft_multiplier"`         // multiplies Raft's timeouts, from 1 to 10: for slow disks and networks
	RaftSnapshotThreshold uint64        `hcl:"raft_snapshot_threshold"` // after how many log entries a snapshot is made
	RaftSnapshotInterval  time.Duration `hcl:"raft_snapshot_interval"`  // how often that is looked at
	RaftTrailingLogs      uint64        `hcl:"raft_trailing_logs"`      // how many log entries are kept behind a snapshot, for followers that are late
}

// ServerGC specifies how long a server keeps what is finished and old; 0: the default.
type ServerGC struct {
	NodeGCThreshold      time.Duration `hcl:"node_gc_threshold"`       // after what time a node that is down is forgotten
	JobGCInterval        time.Duration `hcl:"job_gc_interval"`         // how often the server looks for what can be forgotten
	JobGCThreshold       time.Duration `hcl:"job_gc_threshold"`        // after what time a dead job is forgotten, and a workflow whose run has ended
	EvalGCThreshold      time.Duration `hcl:"eval_gc_threshold"`       // after what time an ended evaluation is forgotten, with its ended allocations
	BatchEvalGCThreshold time.Duration `hcl:"batch_eval_gc_threshold"` // the same for evaluations of batch jobs
}

// NodeHeartbeats configure how nodes show a server that they are there; 0: the default.
type NodeHeartbeats struct {
	HeartbeatGrace         time.Duration `hcl:"heartbeat_grace"`           // how long after its heartbeat was due a node counts as lost
	MinHeartbeatTTL        time.Duration `hcl:"min_heartbeat_ttl"`         // the least time between two heartbeats of a node
	MaxHeartbeatsPerSecond float64       `hcl:"max_heartbeats_per_second"` // heartbeats of all nodes together: with many nodes, each sends fewer
	FailoverHeartbeatTTL   time.Duration `hcl:"failover_heartbeat_ttl"`    // how long a new leader waits for all nodes
	MaxRegistering         int           `hcl:"max_registering"`           // how many nodes' registrations are committed at once
}

// DiskFull (ours) states when the disk of a server or a client counts as full.
type DiskFull struct {
	DiskFullMB      int     `hcl:"disk_full_mb"`      // a disk counts as full when less than this is free, in MiB, and less than disk_full_percent; negative: never
	DiskFullPercent float64 `hcl:"disk_full_percent"` // the same in percent of the disk
}

// JobLimits bound what jobs may be; 0: the default.
type JobLimits struct {
	JobDefaultPriority int    `hcl:"job_default_priority"` // the priority of a job that states none
	JobMaxPriority     int    `hcl:"job_max_priority"`     // the highest priority that a job may have
	JobMaxCount        int    `hcl:"job_max_count"`        // how many instances all groups of a job may have together
	JobMaxSourceSize   string `hcl:"job_max_source_size"`  // how large a job file may be to be kept with its job, in bytes or as in `"1M"`; default: 1 MiB
	JobMaxSize         string `hcl:"job_max_size"`         // how large a job may be, in bytes or as in `"4MiB"`; default: 4 MiB
	JobTrackedVersions int    `hcl:"job_tracked_versions"` // how many versions of a job are kept
}

// Joining are Nomad's older names for what server_join states.
type Joining struct {
	StartJoin        []string      `hcl:"start_join,append"`  // as in server_join
	RetryJoin        []string      `hcl:"retry_join,append"`  // as in server_join
	RetryMax         int           `hcl:"retry_max"`          // as in server_join
	RetryInterval    time.Duration `hcl:"retry_interval"`     // as in server_join
	RejoinAfterLeave bool          `hcl:"rejoin_after_leave"` // goes back to the servers that it remembers although it left them
}

// Join specifies how to find the other servers.
type Join struct {
	StartJoin     []string      `hcl:"start_join,append"` // addresses of other servers (of clients: of RPC), of which one must be reached for the agent to start
	RetryJoin     []string      `hcl:"retry_join,append"` // such addresses that are tried until one is reached
	RetryMax      int           `hcl:"retry_max"`         // tries of retry_join before the agent ends; 0: it never does
	RetryInterval time.Duration `hcl:"retry_interval"`    // the longest time between two tries; default: 30s

	// What follows is ours: the same for servers of other regions.

	StartJoinWAN     []string      `hcl:"start_join_wan,append"` // as start_join, of servers of other regions
	RetryJoinWAN     []string      `hcl:"retry_join_wan,append"` // as retry_join, of servers of other regions
	RetryMaxWAN      int           `hcl:"retry_max_wan"`         // as retry_max, of retry_join_wan
	RetryIntervalWAN time.Duration `hcl:"retry_interval_wan"`    // as retry_interval, of retry_join_wan; default: 30s
}

// ClientLiveness configures when a client that gossips counts as lost.
type ClientLiveness struct {
	Check             time.Duration `hcl:"check"`                                  // how long a suspect may take to answer a probe
	Silence           time.Duration `hcl:"silence"`                                // how long RPC may be silent while gossip is alive, before the client is disconnected
	Keep              time.Duration `hcl:"keep"`                                   // how long its allocations are kept then, where the group states no lost_after
	MassFailureShare  float64       `hcl:"mass_failure_share" was:"storm_share"`   // a part of the clients: more suspects at once are a mass failure
	MassFailureMin    int           `hcl:"mass_failure_min" was:"storm_min"`       // the least number of suspects that are a mass failure
	MassFailureWindow time.Duration `hcl:"mass_failure_window" was:"storm_window"` // clients declared lost within it count as suspects
	MassFailureLimit  time.Duration `hcl:"mass_failure_limit" was:"storm_hold"`    // how long a mass failure keeps clients from being declared lost
}

// DefaultSchedulerConfig is what a new cluster's scheduler starts with; `operator scheduler set-config` changes it.
type DefaultSchedulerConfig struct {
	SchedulerAlgorithm            string     `hcl:"scheduler_algorithm"`               // `binpack` fills nodes, `spread` evens them out; default: binpack
	MemoryOversubscriptionEnabled bool       `hcl:"memory_oversubscription_enabled"`   // whether tasks may use memory up to their `memory_max`
	RejectJobRegistration         bool       `hcl:"reject_job_registration"`           // refuses new jobs and changes of jobs
	PauseEvalBroker               bool       `hcl:"pause_eval_broker"`                 // decides nothing until it is set to false again
	NodeLimit                     uint       `hcl:"node_limit_for_feasibility_checks"` // how many nodes affinities and spreads compare, of each kind of node; default: 100
	Preemption                    Preemption `hcl:"preemption_config,block"`
}

// Preemption specifies which job types may preempt lower bands of priority.
type Preemption struct {
	System   *bool `hcl:"system_scheduler_enabled"`   // whether system jobs may preempt; default: true
	SysBatch *bool `hcl:"sysbatch_scheduler_enabled"` // whether sysbatch jobs may preempt; default: false
	Batch    *bool `hcl:"batch_scheduler_enabled"`    // whether batch jobs may preempt; default: false
	Service  *bool `hcl:"service_scheduler_enabled"`  // whether service jobs may preempt; default: false
}

// Topology names the levels of the cells, lowest first.
type Topology struct {
	Levels []string        `hcl:"levels"` // all levels in their order, lowest first; those within nodes may be named too, for people; default: the level blocks in their order
	Level  []TopologyLevel `hcl:"level,block"`
}

// TopologyLevel specifies what makes nodes share a cell of a level.
type TopologyLevel struct {
	Name string `hcl:"name,label"`
	Meta string `hcl:"meta"` // the key of nodes' metadata whose value names their cell of the level; default: the level's name
}

// Scheduling are the defaults of what `operator scheduler set-config` changes.
type Scheduling struct {
	Policy           string           `hcl:"policy"`                                              // the order in which nodes are tried, as `policy` of a job; default: what scheduler_algorithm states
	Dimensions       []string         `hcl:"dimensions"`                                          // the order in which free resources are compared
	Granularity      map[string]int64 `hcl:"granularity"`                                         // the step in which a resource is compared: GPUs, MHz, MiB
	PreferredCells   []int            `hcl:"preferred_cells"`                                     // sizes in GPUs: a free cell of such a size is divided before a larger one
	ReservationAfter time.Duration    `hcl:"reservation_after"`                                   // how long a request waits before it reserves free resources; negative: never
	ReservationTTL   time.Duration    `hcl:"reservation_ttl"`                                     // how long it keeps a reservation
	Bands            [][]int          `hcl:"bands" like:"bands = [[1, 40], [41, 70], [71, 100]]"` // pairs of the lowest and the highest priority, lowest band first: a request preempts lower bands only; default: [[1, 40], [41, 70], [71, 100]]
	KeepWhole        bool             `hcl:"keep_whole"`                                          // when resources come free, a request that gets all of its own is placed before one that gets a part
	Cycle            time.Duration    `hcl:"cycle"`                                               // for how long a request waits until its effective priority is one higher
	Aging            *int             `hcl:"aging"`                                               // 0: waiting does not raise it; default: 1
	// Preemption is another place for what Nomad states in default_scheduler_config.
	Preemption Preemption `hcl:"preemption,block"`

	// Slots are what projects have to do with scheduling: grace, slot and so on.
	Slots structs.SlotSettings `hcl:",inline"`
}

// Calendar is when weeks of projects' calendars begin.
type Calendar struct {
	TimeZone   string `hcl:"time_zone"`   // a name of the IANA database; default: UTC
	WeekStarts string `hcl:"week_starts"` // a day and a time, as in "mon 00:00"; default: "mon 00:00"
}

// Forecast configures forecasts of the queue: when what waits starts.
type Forecast struct {
	Enabled    *bool         `hcl:"enabled"`     // whether the server makes forecasts; default: true
	Horizon    time.Duration `hcl:"horizon"`     // how far they look ahead
	CPUPercent float64       `hcl:"cpu_percent"` // of a core that they use in the background
}

// Client is the client's part.
type Client struct {
	Enabled  bool              `hcl:"enabled"`                                                                    // whether the agent is a client
	StateDir string            `hcl:"state_dir"`                                                                  // where the client keeps what outlives the agent; default: client/ in data_dir
	AllocDir string            `hcl:"alloc_dir"`                                                                  // where the directories of allocations are; default: alloc/ in data_dir
	Servers  []string          `hcl:"servers,append"`                                                             // RPC addresses of servers to begin with: host, or host:port
	Class    string            `hcl:"node_class"`                                                                 // a name for nodes of one kind, for constraints
	Pool     string            `hcl:"node_pool"`                                                                  // the node pool that the node belongs to
	Options  map[string]string `hcl:"options" effect:"driver.raw_exec.enable,user.denylist,user.checked_drivers"` // Nomad's options, of which these have an effect: driver.raw_exec.enable, user.denylist, user.checked_drivers
	Meta     map[string]string `hcl:"meta"`                                                                       // metadata of the node, for constraints and for the levels of the topology
	Slots    map[string]int    `hcl:"slots" like:"slots { batch = 16 }"`                                          // how many slots of each type the node offers to calendars of projects; default: its cores as batch slots if it has no devices, else none

	Machine
	ClientGC
	DiskFull                        // as in the server's block
	MaxKillTimeout    time.Duration `hcl:"max_kill_timeout"`   // the longest kill_timeout of a task
	DefaultIneligible bool          `hcl:"default_ineligible"` // the node registers as ineligible the first time
	CgroupParent      string        `hcl:"cgroup_parent"`      // the group below which tasks have their control groups; default: nomadish.slice

	Reserved    Reserved               `hcl:"reserved,block"`
	HostVolumes map[string]*HostVolume `hcl:"host_volume,block"`
	Join        clientJoin             `hcl:"server_join,block"`

	Gossip         *bool    `hcl:"gossip"`             // whether the client takes part in the gossip of clients and servers; default: true, with -dev false
	GossipEncrypt  string   `hcl:"gossip_encrypt"`     // the key of that gossip, in base64: client_gossip_encrypt of the servers
	GossipJoin     []string `hcl:"gossip_join,append"` // addresses of any of its members, host or host:port
	SimulateGossip bool     `hcl:"simulate_gossip"`    // simulated nodes gossip too, each on a port of its own
	Simulate       string   `hcl:"simulate"`           // a file that describes simulated nodes, which replace the machine's own
	SimulateBeside bool     `hcl:"simulate_beside"`    // the machine's own node stays beside them

	Artifact artifact `hcl:"artifact,block"`
	Drain    drain    `hcl:"drain_on_shutdown,block"`
	Users    Users    `hcl:"users,block"`

	_ struct{} `inert:"alloc_mounts_dir,host_volumes_dir,host_volume_plugin_dir,common_plugin_dir,chroot_env,preferred_address_family,network_speed,cpu_disable_dmidecode,client_max_port,client_min_port,gc_inode_usage_threshold,gc_volumes_on_node_gc,no_host_uuid,disable_remote_exec,template,cni_path,cni_config_dir,bridge_network_name,bridge_network_subnet,bridge_network_subnet_ipv6,bridge_network_hairpin_mode,host_network,bind_wildcard_default_host_network,nomad_service_discovery,node_max_allocs,log_file,fingerprint,stats"`
}

// Machine specifies what of the machine is offered to tasks, where that is not to be found out.
type Machine struct {
	NetworkInterface string `hcl:"network_interface"` // the interface whose address tasks get; default: that of the default route
	CPUTotalCompute  int    `hcl:"cpu_total_compute"` // MHz of the machine; 0: as found
	MemoryTotalMB    int    `hcl:"memory_total_mb"`   // MiB of memory of the machine; 0: as found
	DiskTotalMB      int    `hcl:"disk_total_mb"`     // MiB of the allocations' disk; 0: as found
	DiskFreeMB       int    `hcl:"disk_free_mb"`      // MiB that are free on it; 0: as found
	ReservableCores  string `hcl:"reservable_cores"`  // the cores that tasks may own, as in 0-3,6; default: all
	MinDynamicPort   int    `hcl:"min_dynamic_port"`  // the first of the ports that tasks get
	MaxDynamicPort   int    `hcl:"max_dynamic_port"`  // the last of them
}

// ClientGC specifies when a client forgets allocations that have ended.
type ClientGC struct {
	GCInterval           time.Duration `hcl:"gc_interval"`             // how often the client looks for ended allocations to remove
	GCParallelDestroys   int           `hcl:"gc_parallel_destroys"`    // how many it removes at once
	GCDiskUsageThreshold float64       `hcl:"gc_disk_usage_threshold"` // percent of the allocations' disk above which the oldest ended ones are removed
	GCMaxAllocs          int           `hcl:"gc_max_allocs"`           // how many allocations the node keeps before the oldest ended ones are removed
}

// Reserved is what a node keeps from tasks.
type Reserved struct {
	CPU           int    `hcl:"cpu"`            // MHz
	MemoryMB      int    `hcl:"memory"`         // MiB
	DiskMB        int    `hcl:"disk"`           // MiB
	ReservedPorts string `hcl:"reserved_ports"` // ports that no task gets, as in 22,8500-8600
	Cores         string `hcl:"cores"`          // cores that no task gets, as in 0-1
}

// Users specifies as whom a node runs tasks.
type Users struct {
	Allowed       []string `hcl:"allowed,append"`  // the only users as whom tasks may run: names, numbers and ranges of numbers; default: all
	Denied        []string `hcl:"denied,append"`   // users as whom no task may run
	AllocGroupMin int      `hcl:"alloc_group_min"` // the first of the group IDs that nothing else on the machine uses: an allocation whose tasks run as other users than the agent's gets one; -1: none
	AllocGroupMax int      `hcl:"alloc_group_max"` // the last of them

	_ struct{} `inert:"dynamic_user_min,dynamic_user_max"`
}

// HostVolume is a directory that the node offers.
type HostVolume struct {
	Path     string `hcl:"path"`      // the absolute path of the directory
	ReadOnly bool   `hcl:"read_only"` // tasks may only read it
}

// Plugin configures a task driver or device plugin by its name.
type Plugin struct {
	Config map[string]any `hcl:"config,block"` // what the plugin takes: see plugin.raw_exec.config below

	_ struct{} `inert:"args"`
}

// ACL switches access control.
type ACL struct {
	Enabled bool `hcl:"enabled,refused"` // must be false: access control lists are not there yet

	_ struct{} `inert:"token_ttl,policy_ttl,role_ttl,replication_token,token_min_expiration_ttl,token_max_expiration_ttl"`
}

// Telemetry specifies how metrics are kept and shown. They are always there at
// /v1/metrics, in both formats.
type Telemetry struct {
	InMemoryInterval   time.Duration `hcl:"in_memory_collection_interval"` // the intervals of the answer of /v1/metrics in JSON
	InMemoryRetention  time.Duration `hcl:"in_memory_retention_period"`    // how long they are kept
	Interval           time.Duration `hcl:"collection_interval"`           // derived gauges are at most this old, and metrics are sent away this often
	DisableHostname    bool          `hcl:"disable_hostname"`              // leaves the label `host` out
	UseNodeName        bool          `hcl:"use_node_name"`                 // the label `host` is the agent's name instead of the machine's
	PrefixFilter       []string      `hcl:"prefix_filter"`                 // prefixes of names to show (+nomad.raft) and to leave out (-nomad.http); the longest that fits counts
	FilterDefault      *bool         `hcl:"filter_default"`                // shows what no prefix fits; default: true
	PublishAllocations bool          `hcl:"publish_allocation_metrics"`    // measures what each task uses
	PublishNodes       bool          `hcl:"publish_node_metrics"`          // measures what the machine does
	Statsd             string        `hcl:"statsd_address"`                // a host:port that all metrics are sent to by UDP
	Statsite           string        `hcl:"statsite_address"`              // a host:port that all metrics are sent to by TCP
	MaxSeries          int           `hcl:"max_series"`                    // how many series there may be of jobs, of allocations, of nodes and of namespaces, each

	_ struct{} `moot:"prometheus_metrics"`
	_ struct{} `inert:"datadog_address,datadog_tags,include_alloc_metadata_in_metrics,allowed_metadata_keys_in_metrics,disable_dispatched_job_summary_metrics,disable_quota_utilization_metrics,disable_rpc_rate_metrics_labels,disable_allocation_hook_metrics,circonus_api_token,circonus_api_app,circonus_api_url,circonus_submission_interval,circonus_submission_url,circonus_check_id,circonus_check_force_metric_activation,circonus_check_instance_id,circonus_check_search_tag,circonus_check_tags,circonus_check_display_name,circonus_broker_id,circonus_broker_select_tag"`
}

// Autopilot is what a new cluster's autopilot starts with; `operator autopilot set-config` changes it.
type Autopilot struct {
	CleanupDeadServers      *bool         `hcl:"cleanup_dead_servers"`      // removes servers that have failed from the peers of Raft, as long as a majority is there and min_quorum are left
	ServerStabilizationTime time.Duration `hcl:"server_stabilization_time"` // how long a new server must be healthy before it votes
	LastContactThreshold    time.Duration `hcl:"last_contact_threshold"`    // how long ago a healthy server may have heard the leader
	MaxTrailingLogs         int           `hcl:"max_trailing_logs"`         // by how many log entries a healthy server may lag
	MinQuorum               int           `hcl:"min_quorum"`                // how many voters cleaning up leaves at least; default: bootstrap_expect from 3 on, else 0

	_ struct{} `inert:"enable_redundancy_zones,disable_upgrade_migration,enable_custom_upgrades"`
}

// Limits bound what callers may cost.
type Limits struct {
	HTTPMaxConns          int           `hcl:"http_max_conns_per_client"` // connections of one address to the HTTP API; 0: any number
	RPCMaxConns           int           `hcl:"rpc_max_conns_per_client"`  // connections of one address to the RPC port; 0: any number
	RPCHandshakeTimeout   time.Duration `hcl:"rpc_handshake_timeout"`     // for the first bytes of a connection to the RPC port, with its TLS handshake
	HTTPSHandshakeTimeout time.Duration `hcl:"https_handshake_timeout"`   // for a TLS handshake on the HTTP port; 0: as for a header
	HTTPMaxBody           int64         `hcl:"http_max_body_bytes"`       // the body of a request, in bytes
	HTTPBodyTimeout       time.Duration `hcl:"http_body_timeout"`         // for the body of a request; of an archive of the state, for each 512 KiB of it, and 120 times as long for the whole
	NodeMaxMessage        int64         `hcl:"node_max_message_bytes"`    // what a node sends to a server in one call, in bytes; 0: any amount
	NodeMaxRate           int64         `hcl:"node_max_bytes_per_second"` // what a node sends over a longer time, in bytes per second; 0: any amount
	JobParseProcesses     int           `hcl:"job_parse_max_processes"`   // job files that the server parses for callers at once
	JobParseWaiting       int           `hcl:"job_parse_max_waiting"`     // job files that wait for that
	JobParseCPU           time.Duration `hcl:"job_parse_cpu_time"`        // the CPU time of parsing one
	JobParseMemory        int64         `hcl:"job_parse_memory_bytes"`    // the memory of parsing one, in bytes
	LogMonitors           int           `hcl:"log_monitor_max_streams"`   // monitors of the agent's log at once
}

// Default is the configuration of an agent without any settings.
func Default() *Config {
	return &Config{
		Region: "global", Datacenter: "dc1", BindAddr: "127.0.0.1", Logging: Logging{LogLevel: "INFO"},
		Ports:  Ports{HTTP: structs.DefaultPortHTTP, RPC: structs.DefaultPortRPC, Serf: structs.DefaultPortSerf, ClientGossip: structs.DefaultPortClientGossip},
		Server: Server{RaftSettings: RaftSettings{RaftMultiplier: 1}},
		Limits: Limits{
			HTTPMaxConns: 100, RPCMaxConns: 100, RPCHandshakeTimeout: 5 * time.Second, HTTPSHandshakeTimeout: 5 * time.Second, HTTPMaxBody: 16 << 20,
			HTTPBodyTimeout: 30 * time.Second, NodeMaxMessage: structs.DefaultNodeMaxMessage, NodeMaxRate: 1 << 20,
			JobParseProcesses: 2, JobParseWaiting: 16, JobParseCPU: time.Second, JobParseMemory: 100 << 20, LogMonitors: 16,
		},
		Telemetry: Telemetry{
			InMemoryInterval: 10 * time.Second, InMemoryRetention: time.Minute, Interval: time.Second, MaxSeries: 100_000,
		},
		Sources: Sources{origins: map[string]Problem{}},
	}
}

// EnableBoth turns server and client on: with -dev a file cannot turn one of them off, as in Nomad.
func (c *Config) EnableBoth() { c.Server.Enabled, c.Client.Enabled = true, true }

// SetDev makes c the base of -dev: server and client in one process on loopback,
// the server's state in memory.
func (c *Config) SetDev() {
	c.Dev = true
	c.BindAddr = "127.0.0.1"
	c.Logging.LogLevel = "DEBUG"
	c.EnableDebug = true
	c.EnableBoth()
	one := 1
	c.Server.BootstrapExpect = &one
	c.Ports.Serf = 0 // it is alone unless configured otherwise; many may run beside each other
	c.Server.ClientGossip, c.Client.Gossip = new(bool), new(bool)
	c.Telemetry.DisableHostname = true
	c.Telemetry.PublishAllocations, c.Telemetry.PublishNodes = true, true
	c.Client.GCMaxAllocs = structs.DefaultGCMaxAllocs
}
