package config

// Blocks of Nomad's of which nothing has an effect yet. They are here so that
// their names are known: what is misspelt in them is refused as elsewhere.

type rpc struct {
	_ struct{} `inert:"accept_backlog,keep_alive_interval,connection_write_timeout,stream_open_timeout,stream_close_timeout,dial_timeout,max_stream_window_size"`
}

type ui struct {
	Policy contentSecurityPolicy `hcl:"content_security_policy,block"`
	Consul uiLink                `hcl:"consul,block"`
	Vault  uiLink                `hcl:"vault,block"`
	Label  uiLabel               `hcl:"label,block"`

	_ struct{} `inert:"enabled,show_cli_hints"`
}

type contentSecurityPolicy struct {
	_ struct{} `inert:"connect_src,default_src,form_action,frame_ancestors,img_src,script_src,style_src"`
}

type uiLink struct {
	_ struct{} `inert:"ui_url"`
}

type uiLabel struct {
	_ struct{} `inert:"text,background_color,text_color"`
}

type sentinel struct {
	Imports map[string]*sentinelImport `hcl:"import,block"`

	_ struct{} `inert:"additional_enabled_modules"`
}

type sentinelImport struct {
	_ struct{} `inert:"path,args"`
}

type audit struct {
	Sinks   map[string]*auditSink   `hcl:"sink,block"`
	Filters map[string]*auditFilter `hcl:"filter,block"`

	_ struct{} `inert:"enabled"`
}

type auditSink struct {
	_ struct{} `inert:"delivery_guarantee,type,format,path,rotate_duration,rotate_bytes,rotate_max_files,mode"`
}

type auditFilter struct {
	_ struct{} `inert:"type,endpoints,stages,operations"`
}

type reporting struct {
	License reportingLicense `hcl:"license,block"`

	_ struct{} `inert:"address,export_interval,snapshot_retention_time,disable_product_usage_reporting"`
}

type reportingLicense struct {
	_ struct{} `inert:"enabled"`
}

type eventlog struct {
	_ struct{} `inert:"enabled,level"`
}

// clientJoin states which servers a client begins with.
type clientJoin struct {
	StartJoin []string `hcl:"start_join,append"` // addresses of servers: RPC's, or, with the port of the clients' gossip, any of its members
	RetryJoin []string `hcl:"retry_join,append"` // the same as start_join

	_ struct{} `inert:"retry_max,retry_interval"`
}

type clientIntroduction struct {
	_ struct{} `inert:"enforcement,default_identity_ttl,max_identity_ttl"`
}

type planRejectionTracker struct {
	_ struct{} `inert:"enabled,node_threshold,node_window"`
}

type search struct {
	_ struct{} `inert:"fuzzy_enabled,limit_query,limit_results,min_term_length"`
}

type raftLogStore struct {
	BoltDB       raftBolt        `hcl:"boltdb,block"`
	WAL          raftWAL         `hcl:"wal,block"`
	Verification logVerification `hcl:"verification,block"`

	_ struct{} `inert:"backend,disable_log_cache"`
}

type raftBolt struct {
	_ struct{} `moot:"no_freelist_sync"`
}

type raftWAL struct {
	_ struct{} `inert:"segment_size_mb"`
}

type logVerification struct {
	_ struct{} `inert:"enabled,interval"`
}

type artifact struct {
	_ struct{} `inert:"http_read_timeout,http_max_size,gcs_timeout,git_timeout,hg_timeout,s3_timeout,decompression_file_count_limit,decompression_size_limit,disable_artifact_inspection,disable_filesystem_isolation,filesystem_isolation_extra_paths,set_environment_variables"`
}

type drain struct {
	_ struct{} `inert:"deadline,ignore_system_jobs,force"`
}
