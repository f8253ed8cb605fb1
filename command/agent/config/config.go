package config

import (
	"time"

	"github.com/nomadish/nomadish/structs"
)

// Config is an agent's configuration. The hcl names are Nomad's, unless a
// comment states that they are ours.
type Config struct {
	Region      string  `hcl:"region"`
	Datacenter  string  `hcl:"datacenter"`
	Name        string  `hcl:"name"` // default: the host's name
	DataDir     string  `hcl:"data_dir"`
	BindAddr    string  `hcl:"bind_addr"` // default: loopback
	Logging     Logging `hcl:",inline"`
	EnableDebug bool    `hcl:"enable_debug"`
	Leaving     Leaving `hcl:",inline"`
	// Insecure (ours) lets the agent start although other machines can reach it without showing who they are.
	Insecure        bool              `hcl:"insecure"`
	ResponseHeaders map[string]string `hcl:"http_api_response_headers"`

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
	LogLevel string `hcl:"log_level"`
	LogJSON  bool   `hcl:"log_json"`
	// LogLocation adds file and line to each log line.
	LogLocation bool `hcl:"log_include_location"`
}

// Leaving specifies when an agent that ends leaves the cluster for good.
type Leaving struct {
	// LeaveOnInterrupt and LeaveOnTerminate transfer leadership before the end.
	LeaveOnInterrupt bool `hcl:"leave_on_interrupt"`
	LeaveOnTerminate bool `hcl:"leave_on_terminate"`
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
	HTTP int `hcl:"http"`
	RPC  int `hcl:"rpc"`
	Serf int `hcl:"serf"`
	// SerfWAN (ours) is that of the gossip with other regions; see WANPort.
	SerfWAN *int `hcl:"serf_wan"`
	// ClientGossip is ours.
	ClientGossip int `hcl:"client_gossip"`
}

// Addresses are hosts (for addresses), or hosts with or without a port (for advertise).
type Addresses struct {
	HTTP string `hcl:"http"`
	RPC  string `hcl:"rpc"`
	Serf string `hcl:"serf"`
	// SerfWAN (ours): for addresses, those of Serf if not stated.
	SerfWAN string `hcl:"serf_wan"`
	// ClientGossip is ours.
	ClientGossip string `hcl:"client_gossip"`
}

// Server is the server's part.
type Server struct {
	Enabled           bool     `hcl:"enabled"`
	BootstrapExpect   *int     `hcl:"bootstrap_expect"` // see Expect
	DataDir           string   `hcl:"data_dir"`         // default: server/ in the agent's
	NumSchedulers     *int     `hcl:"num_schedulers"`
	EnabledSchedulers []string `hcl:"enabled_schedulers,append"`

	RaftSettings
	ServerGC
	NodeHeartbeats
	DiskFull
	JobLimits
	Joining

	// TrustUserHeader (ours): a request is of the user whom its header X-Nomadish-User states. Not stated: with -dev alone.
	TrustUserHeader *bool `hcl:"trust_user_header"`

	EventBufferSize  int                    `hcl:"event_buffer_size"`
	DefaultScheduler DefaultSchedulerConfig `hcl:"default_scheduler_config,block"`

	// Join specifies how to find the other servers, as Joining does.
	Join Join `hcl:"server_join,block"`
	// Encrypt is the key of the gossip among servers, in base64.
	Encrypt string `hcl:"encrypt"`

	// ClientGossip (on by default), ClientGossipEncrypt and ClientLiveness are ours: whether the server takes
	// part in the clients' gossip, its key (never that of Encrypt), and how lost clients are distinguished from others.
	ClientGossip        *bool          `hcl:"client_gossip"`
	ClientGossipEncrypt string         `hcl:"client_gossip_encrypt"`
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
	RaftMultiplier        int           `hcl:"raft_multiplier"` // of Raft's clocks; default 1
	RaftSnapshotThreshold uint64        `hcl:"raft_snapshot_threshold"`
	RaftSnapshotInterval  time.Duration `hcl:"raft_snapshot_interval"`
	RaftTrailingLogs      uint64        `hcl:"raft_trailing_logs"`
}

// ServerGC specifies how long a server keeps what is finished and old; 0: the default.
type ServerGC struct {
	NodeGCThreshold      time.Duration `hcl:"node_gc_threshold"`
	JobGCInterval        time.Duration `hcl:"job_gc_interval"`
	JobGCThreshold       time.Duration `hcl:"job_gc_threshold"`
	EvalGCThreshold      time.Duration `hcl:"eval_gc_threshold"`
	BatchEvalGCThreshold time.Duration `hcl:"batch_eval_gc_threshold"`
}

// NodeHeartbeats configure how nodes show a server that they are there; 0: the default.
type NodeHeartbeats struct {
	HeartbeatGrace         time.Duration `hcl:"heartbeat_grace"`
	MinHeartbeatTTL        time.Duration `hcl:"min_heartbeat_ttl"`
	MaxHeartbeatsPerSecond float64       `hcl:"max_heartbeats_per_second"`
	FailoverHeartbeatTTL   time.Duration `hcl:"failover_heartbeat_ttl"`
	// MaxRegistering is ours: how many nodes' registrations are committed at once; 0: 256.
	MaxRegistering int `hcl:"max_registering"`
}

// DiskFull (ours) states when the disk of a server or a client counts as full.
type DiskFull struct {
	// The disk counts as full when less than both is free. 0: the default; MB negative: never.
	DiskFullMB      int     `hcl:"disk_full_mb"`
	DiskFullPercent float64 `hcl:"disk_full_percent"`
}

// JobLimits bound what jobs may be; 0: the default.
type JobLimits struct {
	JobDefaultPriority int    `hcl:"job_default_priority"`
	JobMaxPriority     int    `hcl:"job_max_priority"`
	JobMaxCount        int    `hcl:"job_max_count"`
	JobMaxSourceSize   string `hcl:"job_max_source_size"` // bytes, or "1M"
	JobMaxSize         string `hcl:"job_max_size"`        // ours; bytes, or "4MiB"
	JobTrackedVersions int    `hcl:"job_tracked_versions"`
}

// Joining are Nomad's older names for what server_join states.
type Joining struct {
	StartJoin        []string      `hcl:"start_join,append"`
	RetryJoin        []string      `hcl:"retry_join,append"`
	RetryMax         int           `hcl:"retry_max"`
	RetryInterval    time.Duration `hcl:"retry_interval"`
	RejoinAfterLeave bool          `hcl:"rejoin_after_leave"`
}

// Join specifies how to find the other servers.
type Join struct {
	// StartJoin are addresses of gossip that must be joined for the agent to start.
	StartJoin []string `hcl:"start_join,append"`
	// RetryJoin are addresses that are tried until one is reached.
	RetryJoin     []string      `hcl:"retry_join,append"`
	RetryMax      int           `hcl:"retry_max"` // tries before the agent gives up and ends; 0: never
	RetryInterval time.Duration `hcl:"retry_interval"`

	// What follows is ours: the same for servers of other regions.

	StartJoinWAN     []string      `hcl:"start_join_wan,append"`
	RetryJoinWAN     []string      `hcl:"retry_join_wan,append"`
	RetryMaxWAN      int           `hcl:"retry_max_wan"`
	RetryIntervalWAN time.Duration `hcl:"retry_interval_wan"`
}

// ClientLiveness configures when a client that gossips counts as lost. Zero values mean the defaults.
type ClientLiveness struct {
	Check             time.Duration `hcl:"check"`                                  // how long a suspect may take to answer a probe
	Silence           time.Duration `hcl:"silence"`                                // how long RPC may be silent while gossip is alive, before the client is disconnected
	Keep              time.Duration `hcl:"keep"`                                   // how long its allocations are kept then, where the group states no lost_after
	MassFailureShare  float64       `hcl:"mass_failure_share" was:"storm_share"`   // of the clients; more suspects at once are a mass failure
	MassFailureMin    int           `hcl:"mass_failure_min" was:"storm_min"`       // the least number of suspects that are a mass failure
	MassFailureWindow time.Duration `hcl:"mass_failure_window" was:"storm_window"` // clients declared lost within it count as suspects
	MassFailureLimit  time.Duration `hcl:"mass_failure_limit" was:"storm_hold"`    // how long a mass failure keeps clients from being declared lost
}

// DefaultSchedulerConfig is what a new cluster's scheduler starts with.
type DefaultSchedulerConfig struct {
	SchedulerAlgorithm            string     `hcl:"scheduler_algorithm"`
	MemoryOversubscriptionEnabled bool       `hcl:"memory_oversubscription_enabled"`
	RejectJobRegistration         bool       `hcl:"reject_job_registration"`
	PauseEvalBroker               bool       `hcl:"pause_eval_broker"`
	NodeLimit                     uint       `hcl:"node_limit_for_feasibility_checks"`
	Preemption                    Preemption `hcl:"preemption_config,block"`
}

// Preemption specifies which job types may preempt; nil: as in a new cluster without it, where
// system jobs alone may.
type Preemption struct {
	System   *bool `hcl:"system_scheduler_enabled"`
	SysBatch *bool `hcl:"sysbatch_scheduler_enabled"`
	Batch    *bool `hcl:"batch_scheduler_enabled"`
	Service  *bool `hcl:"service_scheduler_enabled"`
}

// Topology names the levels of the cells, lowest first.
type Topology struct {
	// Levels may name those within nodes too, for people: which of them a node has is
	// what the node itself reports. Not stated: the level blocks in their order.
	Levels []string        `hcl:"levels"`
	Level  []TopologyLevel `hcl:"level,block"`
}

// TopologyLevel specifies what makes nodes share a cell of a level.
type TopologyLevel struct {
	Name string `hcl:"name,label"`
	Meta string `hcl:"meta"` // a key of the nodes' meta; default: the level's name
}

// Scheduling are the defaults of what `operator scheduler set-config` changes.
type Scheduling struct {
	Policy           string           `hcl:"policy"` // default: scheduler_algorithm
	Dimensions       []string         `hcl:"dimensions"`
	Granularity      map[string]int64 `hcl:"granularity"`
	PreferredCells   []int            `hcl:"preferred_cells"`   // GPUs
	ReservationAfter time.Duration    `hcl:"reservation_after"` // negative: never
	ReservationTTL   time.Duration    `hcl:"reservation_ttl"`
	// Bands are pairs of the lowest and the highest priority, lowest band first.
	Bands     [][]int       `hcl:"bands" like:"bands = [[1, 40], [41, 70], [71, 100]]"`
	KeepWhole bool          `hcl:"keep_whole"`
	Cycle     time.Duration `hcl:"cycle"` // 0: the default
	Aging     *int          `hcl:"aging"` // 0: off; 1, and not stated: on
	// Preemption is another place for what Nomad states in default_scheduler_config.
	Preemption Preemption `hcl:"preemption,block"`

	// Slots are what projects have to do with scheduling: grace, slot and so on.
	Slots structs.SlotSettings `hcl:",inline"`
}

// Calendar is when weeks of projects' calendars begin; empty: Monday 00:00 in UTC.
type Calendar struct {
	TimeZone   string `hcl:"time_zone"`   // of the IANA database
	WeekStarts string `hcl:"week_starts"` // a day and a time, as in "mon 00:00"
}

// Forecast configures forecasts of the queue: when what waits starts.
type Forecast struct {
	Enabled    *bool         `hcl:"enabled"`     // default: true
	Horizon    time.Duration `hcl:"horizon"`     // how far they look; 0: 168h
	CPUPercent float64       `hcl:"cpu_percent"` // of a core, in the background; 0: 5
}

// Client is the client's part.
type Client struct {
	Enabled  bool              `hcl:"enabled"`
	StateDir string            `hcl:"state_dir"` // default: client/ in the agent's
	AllocDir string            `hcl:"alloc_dir"` // default: alloc/ in the agent's
	Servers  []string          `hcl:"servers,append"`
	Class    string            `hcl:"node_class"`
	Pool     string            `hcl:"node_pool"`
	Options  map[string]string `hcl:"options" effect:"driver.raw_exec.enable,user.denylist,user.checked_drivers"`
	Meta     map[string]string `hcl:"meta"`
	// Slots (ours) are how many slots of each type the node offers to calendars of projects; nil: its cores as batch slots if it
	// has no devices, else none.
	Slots map[string]int `hcl:"slots" like:"slots { batch = 16 }"`

	Machine
	ClientGC
	DiskFull                        // as in the server's block
	MaxKillTimeout    time.Duration `hcl:"max_kill_timeout"`
	DefaultIneligible bool          `hcl:"default_ineligible"`
	// CgroupParent is where tasks have their control groups, below the root of each hierarchy.
	CgroupParent string `hcl:"cgroup_parent"`

	Reserved    Reserved               `hcl:"reserved,block"`
	HostVolumes map[string]*HostVolume `hcl:"host_volume,block"`
	Join        clientJoin             `hcl:"server_join,block"`

	// Gossip (on by default), GossipEncrypt and GossipJoin are ours: whether the client takes part in the
	// gossip of clients and servers, its key, and addresses of any members (host, or host:port).
	Gossip        *bool    `hcl:"gossip"`
	GossipEncrypt string   `hcl:"gossip_encrypt"`
	GossipJoin    []string `hcl:"gossip_join,append"`
	// SimulateGossip (ours) lets simulated nodes gossip too, each on a port of its own.
	SimulateGossip bool `hcl:"simulate_gossip"`
	// Simulate and SimulateBeside are ours: a file of shapes of simulated nodes, and
	// whether the agent's own node stays beside them.
	Simulate       string `hcl:"simulate"`
	SimulateBeside bool   `hcl:"simulate_beside"`

	Artifact artifact `hcl:"artifact,block"`
	Drain    drain    `hcl:"drain_on_shutdown,block"`
	Users    Users    `hcl:"users,block"`

	_ struct{} `inert:"alloc_mounts_dir,host_volumes_dir,host_volume_plugin_dir,common_plugin_dir,chroot_env,preferred_address_family,network_speed,cpu_disable_dmidecode,client_max_port,client_min_port,gc_inode_usage_threshold,gc_volumes_on_node_gc,no_host_uuid,disable_remote_exec,template,cni_path,cni_config_dir,bridge_network_name,bridge_network_subnet,bridge_network_subnet_ipv6,bridge_network_hairpin_mode,host_network,bind_wildcard_default_host_network,nomad_service_discovery,node_max_allocs,log_file,fingerprint,stats"`
}

// Machine specifies what of the machine is offered to tasks, where that is not to be found out.
type Machine struct {
	NetworkInterface string `hcl:"network_interface"`
	CPUTotalCompute  int    `hcl:"cpu_total_compute"` // MHz
	MemoryTotalMB    int    `hcl:"memory_total_mb"`
	DiskTotalMB      int    `hcl:"disk_total_mb"`
	DiskFreeMB       int    `hcl:"disk_free_mb"`
	ReservableCores  string `hcl:"reservable_cores"`
	MinDynamicPort   int    `hcl:"min_dynamic_port"`
	MaxDynamicPort   int    `hcl:"max_dynamic_port"`
}

// ClientGC specifies when a client forgets allocations that have ended.
type ClientGC struct {
	GCInterval           time.Duration `hcl:"gc_interval"`
	GCParallelDestroys   int           `hcl:"gc_parallel_destroys"`
	GCDiskUsageThreshold float64       `hcl:"gc_disk_usage_threshold"` // percent
	GCMaxAllocs          int           `hcl:"gc_max_allocs"`
}

// Reserved is what a node keeps from tasks.
type Reserved struct {
	CPU           int    `hcl:"cpu"`    // MHz
	MemoryMB      int    `hcl:"memory"` // MiB
	DiskMB        int    `hcl:"disk"`   // MiB
	ReservedPorts string `hcl:"reserved_ports"`
	Cores         string `hcl:"cores"`
}

// Users specifies as whom a node runs tasks. All but Nomad's names, which have no effect yet, is ours.
type Users struct {
	// Allowed are the only users, unless it is empty; Denied are never. Both hold names, numbers and ranges of numbers.
	Allowed []string `hcl:"allowed,append"`
	Denied  []string `hcl:"denied,append"`
	// AllocGroupMin to AllocGroupMax are group IDs that nothing else on the machine uses: an allocation whose tasks run as
	// other users than the agent's gets one. AllocGroupMin -1: none.
	AllocGroupMin int `hcl:"alloc_group_min"`
	AllocGroupMax int `hcl:"alloc_group_max"`

	_ struct{} `inert:"dynamic_user_min,dynamic_user_max"`
}

// HostVolume is a directory that the node offers.
type HostVolume struct {
	Path     string `hcl:"path"`
	ReadOnly bool   `hcl:"read_only"`
}

// Plugin configures a task driver or device plugin by its name.
type Plugin struct {
	Config map[string]any `hcl:"config,block"`

	_ struct{} `inert:"args"`
}

// ACL switches access control.
type ACL struct {
	Enabled bool `hcl:"enabled,refused"`

	_ struct{} `inert:"token_ttl,policy_ttl,role_ttl,replication_token,token_min_expiration_ttl,token_max_expiration_ttl"`
}

// Telemetry specifies how metrics are kept and shown. They are always there at
// /v1/metrics, in both formats.
type Telemetry struct {
	InMemoryInterval  time.Duration `hcl:"in_memory_collection_interval"`
	InMemoryRetention time.Duration `hcl:"in_memory_retention_period"`
	Interval          time.Duration `hcl:"collection_interval"`
	DisableHostname   bool          `hcl:"disable_hostname"`
	UseNodeName       bool          `hcl:"use_node_name"`
	// PrefixFilter holds prefixes of names to let through (+) or keep out (-).
	PrefixFilter  []string `hcl:"prefix_filter"`
	FilterDefault *bool    `hcl:"filter_default"`
	// PublishAllocations and PublishNodes have what tasks use and what the machine does measured.
	PublishAllocations bool `hcl:"publish_allocation_metrics"`
	PublishNodes       bool `hcl:"publish_node_metrics"`
	// Statsd and Statsite are host:port that all metrics are sent to, by UDP and by TCP.
	Statsd   string `hcl:"statsd_address"`
	Statsite string `hcl:"statsite_address"`
	// MaxSeries (ours) bounds the series of jobs, those of allocations, those of nodes and those of namespaces.
	MaxSeries int `hcl:"max_series"`

	_ struct{} `moot:"prometheus_metrics"`
	_ struct{} `inert:"datadog_address,datadog_tags,include_alloc_metadata_in_metrics,allowed_metadata_keys_in_metrics,disable_dispatched_job_summary_metrics,disable_quota_utilization_metrics,disable_rpc_rate_metrics_labels,disable_allocation_hook_metrics,circonus_api_token,circonus_api_app,circonus_api_url,circonus_submission_interval,circonus_submission_url,circonus_check_id,circonus_check_force_metric_activation,circonus_check_instance_id,circonus_check_search_tag,circonus_check_tags,circonus_check_display_name,circonus_broker_id,circonus_broker_select_tag"`
}

// Autopilot seeds what `operator autopilot set-config` changes; nil and 0: the default.
type Autopilot struct {
	CleanupDeadServers      *bool         `hcl:"cleanup_dead_servers"`
	ServerStabilizationTime time.Duration `hcl:"server_stabilization_time"`
	LastContactThreshold    time.Duration `hcl:"last_contact_threshold"`
	MaxTrailingLogs         int           `hcl:"max_trailing_logs"`
	MinQuorum               int           `hcl:"min_quorum"`

	_ struct{} `inert:"enable_redundancy_zones,disable_upgrade_migration,enable_custom_upgrades"`
}

// Limits bound what callers may cost.
type Limits struct {
	// HTTPMaxConns and RPCMaxConns bound one address's connections; 0: no bound.
	HTTPMaxConns        int           `hcl:"http_max_conns_per_client"`
	RPCMaxConns         int           `hcl:"rpc_max_conns_per_client"`
	RPCHandshakeTimeout time.Duration `hcl:"rpc_handshake_timeout"`
	// HTTPSHandshakeTimeout bounds a TLS handshake on the HTTP port; 0: the time for a header does.
	HTTPSHandshakeTimeout time.Duration `hcl:"https_handshake_timeout"`
	// HTTPMaxBody (ours) bounds a request's body, in bytes.
	HTTPMaxBody int64 `hcl:"http_max_body_bytes"`
	// HTTPBodyTimeout (ours) bounds how long a request's body may take; of an archive of the state, each 512 KiB of it.
	// The whole archive has 120 times as long.
	HTTPBodyTimeout time.Duration `hcl:"http_body_timeout"`
	// NodeMaxMessage (ours) bounds what a node sends to a server in one call, in bytes; NodeMaxRate (ours) what it sends over a longer
	// time, in bytes per second; 0: no bound.
	NodeMaxMessage int64 `hcl:"node_max_message_bytes"`
	NodeMaxRate    int64 `hcl:"node_max_bytes_per_second"`
	// JobParseProcesses and JobParseWaiting (ours) bound the job files that are parsed for callers at once, and those that wait.
	JobParseProcesses int `hcl:"job_parse_max_processes"`
	JobParseWaiting   int `hcl:"job_parse_max_waiting"`
	// JobParseCPU and JobParseMemory (ours) bound what one of them may cost; memory in bytes.
	JobParseCPU    time.Duration `hcl:"job_parse_cpu_time"`
	JobParseMemory int64         `hcl:"job_parse_memory_bytes"`
	// LogMonitors (ours) bounds the monitors of the agent's log at once.
	LogMonitors int `hcl:"log_monitor_max_streams"`
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
