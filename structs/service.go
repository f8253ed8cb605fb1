package structs

import "time"

// Where a service is registered.
const (
	ServiceProviderConsul = "consul"
	ServiceProviderNomad  = "nomad" // the built-in catalog
)

// Service is something that a task or group offers, found by name.
type Service struct {
	_struct sparse `entry:",omitempty"`

	Name              string            `hcl:"name"`
	Tags              []string          `hcl:"tags"`
	CanaryTags        []string          `hcl:"canary_tags"`
	EnableTagOverride bool              `hcl:"enable_tag_override"`
	PortLabel         string            `hcl:"port"`
	AddressMode       string            `hcl:"address_mode" check:"oneof=auto|driver|host|alloc|alloc_ipv6"` // "auto", "driver", "host", "alloc", …
	Address           string            `hcl:"address"`
	TaskName          string            `hcl:"task"`
	OnUpdate          string            `hcl:"on_update" check:"oneof=require_healthy|ignore_warnings|ignore"`
	Provider          string            `hcl:"provider" check:"oneof=consul|nomad"` // one of the ServiceProvider constants; "consul" if not stated
	Cluster           string            `hcl:"cluster"`
	Kind              string            `hcl:"kind"`
	Checks            []*ServiceCheck   `hcl:"check,block"`
	CheckRestart      *CheckRestart     `hcl:"check_restart,block"`
	Connect           *ConsulConnect    `hcl:"connect,block"`
	Meta              map[string]string `hcl:"meta,block"`
	CanaryMeta        map[string]string `hcl:"canary_meta,block"`
	TaggedAddresses   map[string]string `hcl:"tagged_addresses,block"`
	Identity          *WorkloadIdentity `hcl:"identity,block"`
	Weights           *ServiceWeights   `hcl:"weights,block"`
}

// Kinds of service check.
const (
	ServiceCheckHTTP   = "http"
	ServiceCheckTCP    = "tcp"
	ServiceCheckScript = "script"
	ServiceCheckGRPC   = "grpc"
)

// ServiceCheck checks periodically whether a service is healthy.
type ServiceCheck struct {
	_struct sparse `entry:",omitempty"`

	Name                   string              `hcl:"name"`
	Type                   string              `hcl:"type" check:"oneof=http|tcp|script|grpc"` // one of the ServiceCheck constants
	Command                string              `hcl:"command"`
	Args                   []string            `hcl:"args"`
	Path                   string              `hcl:"path"`
	Protocol               string              `hcl:"protocol"`
	PortLabel              string              `hcl:"port"`
	Expose                 bool                `hcl:"expose"`
	AddressMode            string              `hcl:"address_mode" check:"oneof=alloc|alloc_ipv6|driver|host"`
	Advertise              string              `hcl:"advertise"`
	Interval               time.Duration       `hcl:"interval" check:"min=0"`
	Timeout                time.Duration       `hcl:"timeout" check:"min=0"`
	InitialStatus          string              `hcl:"initial_status"`
	Notes                  string              `hcl:"notes"`
	TLSServerName          string              `hcl:"tls_server_name"`
	TLSSkipVerify          bool                `hcl:"tls_skip_verify"`
	Header                 map[string][]string `hcl:"header,block"`
	Method                 string              `hcl:"method"`
	CheckRestart           *CheckRestart       `hcl:"check_restart,block"`
	GRPCService            string              `hcl:"grpc_service"`
	GRPCUseTLS             bool                `hcl:"grpc_use_tls"`
	TaskName               string              `hcl:"task"`
	SuccessBeforePassing   int                 `hcl:"success_before_passing" check:"min=0"`
	FailuresBeforeCritical int                 `hcl:"failures_before_critical" check:"min=0"`
	FailuresBeforeWarning  int                 `hcl:"failures_before_warning" check:"min=0"`
	Body                   string              `hcl:"body"`
	OnUpdate               string              `hcl:"on_update" check:"oneof=require_healthy|ignore_warnings|ignore"`
}

// CheckRestart restarts a task whose check keeps failing.
type CheckRestart struct {
	Limit          int           `hcl:"limit" check:"min=0"` // failures in a row; 0: never
	Grace          time.Duration `hcl:"grace" check:"min=0"` // default 1 s
	IgnoreWarnings bool          `hcl:"ignore_warnings"`
}

// ServiceWeights weigh instances in DNS answers.
type ServiceWeights struct {
	Passing int `hcl:"passing" check:"min=1"` // 0 is the default of 1
	Warning int `hcl:"warning" check:"min=1"` // 0 is the default of 1
}

// SetDefaults fills what a check_restart block has when it states nothing.
func (c *CheckRestart) SetDefaults() { c.Grace = time.Second }
