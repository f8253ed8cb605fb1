package structs

import "time"

// The types of this file are Nomad's connect block. They parse and round-trip;
// nothing acts on them.

// ConsulConnect puts a service into a mesh.
type ConsulConnect struct {
	Native         bool                  `hcl:"native"`
	Gateway        *ConsulGateway        `hcl:"gateway,block"`
	SidecarService *ConsulSidecarService `hcl:"sidecar_service,block"`
	SidecarTask    *SidecarTask          `hcl:"sidecar_task,block"`
}

// ConsulSidecarService is the proxy's own registration.
type ConsulSidecarService struct {
	Tags                   []string          `hcl:"tags"`
	Port                   string            `hcl:"port"`
	DisableDefaultTCPCheck bool              `hcl:"disable_default_tcp_check"`
	Proxy                  *ConsulProxy      `hcl:"proxy,block"`
	Meta                   map[string]string `hcl:"meta,block"`
}

// SidecarTask changes the task that runs the proxy.
type SidecarTask struct {
	Name          string              `hcl:"name"`
	Driver        string              `hcl:"driver"`
	User          string              `hcl:"user"`
	KillTimeout   time.Duration       `hcl:"kill_timeout" check:"min=0"` // default 5 s
	ShutdownDelay time.Duration       `hcl:"shutdown_delay" check:"min=0"`
	KillSignal    string              `hcl:"kill_signal"`
	Config        map[string]any      `hcl:"config,block"`
	Env           map[string]string   `hcl:"env,block"`
	Resources     *Resources          `hcl:"resources,block"`
	Meta          map[string]string   `hcl:"meta,block"`
	LogConfig     *LogConfig          `hcl:"logs,block"`
	VolumeMounts  []*VolumeMount      `hcl:"volume_mount,block"`
	Identities    []*WorkloadIdentity `hcl:"identity,block"`
}

// ConsulProxy configures the proxy.
type ConsulProxy struct {
	LocalServiceAddress string                  `hcl:"local_service_address"`
	LocalServicePort    int                     `hcl:"local_service_port"`
	Expose              *ConsulExposeConfig     `hcl:"expose,block"`
	Upstreams           []*ConsulUpstream       `hcl:"upstreams,block"`
	TransparentProxy    *ConsulTransparentProxy `hcl:"transparent_proxy,block"`
	Config              map[string]any          `hcl:"config,block"`
}

// ConsulExposeConfig lists paths served outside the mesh.
type ConsulExposeConfig struct {
	Paths []*ConsulExposePath `hcl:"path,block"`
}

// ConsulExposePath is one path served outside the mesh.
type ConsulExposePath struct {
	Path          string `hcl:"path"`
	Protocol      string `hcl:"protocol"`
	LocalPathPort int    `hcl:"local_path_port"`
	ListenerPort  string `hcl:"listener_port"`
}

// ConsulUpstream is a service that the proxy reaches for the task.
type ConsulUpstream struct {
	DestinationName      string             `hcl:"destination_name"`
	DestinationNamespace string             `hcl:"destination_namespace"`
	DestinationPeer      string             `hcl:"destination_peer"`
	DestinationPartition string             `hcl:"destination_partition"`
	DestinationType      string             `hcl:"destination_type"`
	LocalBindPort        int                `hcl:"local_bind_port"`
	Datacenter           string             `hcl:"datacenter"`
	LocalBindAddress     string             `hcl:"local_bind_address"`
	LocalBindSocketPath  string             `hcl:"local_bind_socket_path"`
	LocalBindSocketMode  string             `hcl:"local_bind_socket_mode"`
	MeshGateway          *ConsulMeshGateway `hcl:"mesh_gateway,block"`
	Config               map[string]any     `hcl:"config,block"`
}

// ConsulMeshGateway describes how an upstream passes gateways.
type ConsulMeshGateway struct {
	Mode string `hcl:"mode"`
}

// ConsulTransparentProxy captures a task's traffic.
type ConsulTransparentProxy struct {
	UID                  string   `hcl:"uid"`
	OutboundPort         uint16   `hcl:"outbound_port"`
	ExcludeInboundPorts  []string `hcl:"exclude_inbound_ports"`
	ExcludeOutboundPorts []uint16 `hcl:"exclude_outbound_ports"`
	ExcludeOutboundCIDRs []string `hcl:"exclude_outbound_cidrs"`
	ExcludeUIDs          []string `hcl:"exclude_uids"`
	NoDNS                bool     `hcl:"no_dns"`
}

// ConsulGateway makes a service a gateway.
type ConsulGateway struct {
	Proxy       *ConsulGatewayProxy           `hcl:"proxy,block"`
	Ingress     *ConsulIngressConfigEntry     `hcl:"ingress,block"`
	Terminating *ConsulTerminatingConfigEntry `hcl:"terminating,block"`
	Mesh        *ConsulMeshConfigEntry        `hcl:"mesh,block"`
}

// ConsulGatewayProxy configures a gateway's proxy.
type ConsulGatewayProxy struct {
	ConnectTimeout                  time.Duration                        `hcl:"connect_timeout" check:"min=0"` // 0 is the default of 5 s
	EnvoyGatewayBindTaggedAddresses bool                                 `hcl:"envoy_gateway_bind_tagged_addresses"`
	EnvoyGatewayBindAddresses       map[string]*ConsulGatewayBindAddress `hcl:"envoy_gateway_bind_addresses,block"`
	EnvoyGatewayNoDefaultBind       bool                                 `hcl:"envoy_gateway_no_default_bind"`
	EnvoyDNSDiscoveryType           string                               `hcl:"envoy_dns_discovery_type"`
	Config                          map[string]any                       `hcl:"config,block"`
}

// ConsulGatewayBindAddress is an address that a gateway listens on.
type ConsulGatewayBindAddress struct {
	Name    string `hcl:"name,label"`
	Address string `hcl:"address"`
	Port    int    `hcl:"port"`
}

// ConsulIngressConfigEntry configures an ingress gateway.
type ConsulIngressConfigEntry struct {
	TLS       *ConsulGatewayTLSConfig  `hcl:"tls,block"`
	Listeners []*ConsulIngressListener `hcl:"listener,block"`
}

// ConsulGatewayTLSConfig is a gateway's TLS.
type ConsulGatewayTLSConfig struct {
	Enabled       bool                       `hcl:"enabled"`
	TLSMinVersion string                     `hcl:"tls_min_version"`
	TLSMaxVersion string                     `hcl:"tls_max_version"`
	CipherSuites  []string                   `hcl:"cipher_suites"`
	SDS           *ConsulGatewayTLSSDSConfig `hcl:"sds,block"`
}

// ConsulGatewayTLSSDSConfig is where a gateway gets its certificates.
type ConsulGatewayTLSSDSConfig struct {
	ClusterName  string `hcl:"cluster_name"`
	CertResource string `hcl:"cert_resource"`
}

// ConsulIngressListener is a port of an ingress gateway.
type ConsulIngressListener struct {
	Port     int                     `hcl:"port"`
	Protocol string                  `hcl:"protocol"`
	Services []*ConsulIngressService `hcl:"service,block"`
}

// ConsulIngressService is a service behind an ingress gateway.
type ConsulIngressService struct {
	Name                  string                     `hcl:"name"`
	Hosts                 []string                   `hcl:"hosts"`
	TLS                   *ConsulGatewayTLSConfig    `hcl:"tls,block"`
	RequestHeaders        *ConsulHTTPHeaderModifiers `hcl:"request_headers,block"`
	ResponseHeaders       *ConsulHTTPHeaderModifiers `hcl:"response_headers,block"`
	MaxConnections        uint32                     `hcl:"max_connections"` // 0: no limit, here and below
	MaxPendingRequests    uint32                     `hcl:"max_pending_requests"`
	MaxConcurrentRequests uint32                     `hcl:"max_concurrent_requests"`
}

// ConsulHTTPHeaderModifiers changes headers on their way through a gateway.
type ConsulHTTPHeaderModifiers struct {
	Add    map[string]string `hcl:"add,block"`
	Set    map[string]string `hcl:"set,block"`
	Remove []string          `hcl:"remove"`
}

// ConsulTerminatingConfigEntry configures a terminating gateway.
type ConsulTerminatingConfigEntry struct {
	Services []*ConsulLinkedService `hcl:"service,block"`
}

// ConsulLinkedService is a service behind a terminating gateway.
type ConsulLinkedService struct {
	Name     string `hcl:"name"`
	CAFile   string `hcl:"ca_file"`
	CertFile string `hcl:"cert_file"`
	KeyFile  string `hcl:"key_file"`
	SNI      string `hcl:"sni"`
}

// ConsulMeshConfigEntry makes a gateway a mesh gateway; it has no fields.
type ConsulMeshConfigEntry struct{}

// SetDefaults fills what a sidecar_task block has when it states nothing.
func (t *SidecarTask) SetDefaults() { t.KillTimeout = DefaultKillTimeout }
