package config

import "github.com/nomadish/nomadish/internal/wire"

// TLS specifies which connections are guarded by certificates, and how.
type TLS struct {
	HTTP     bool   `hcl:"http"`      // the HTTP API is HTTPS
	RPC      bool   `hcl:"rpc"`       // RPC and Raft, on both sides
	CAFile   string `hcl:"ca_file"`   // PEM: the authorities whose certificates are trusted
	CertFile string `hcl:"cert_file"` // PEM: the agent's certificate
	KeyFile  string `hcl:"key_file"`  // PEM: its key
	// VerifyServerHostname lets only certificates of the name server.REGION.nomad act as
	// servers.
	VerifyServerHostname bool `hcl:"verify_server_hostname"`
	// VerifyHTTPSClient answers only callers with a certificate of the authorities.
	VerifyHTTPSClient bool `hcl:"verify_https_client"`
	// ClientRequests lets clients' certificates call what people call. On servers that is what clients' agents
	// pass on.
	ClientRequests bool `hcl:"client_requests"`
	// RPCUpgradeMode lets plain connections in as well, while a cluster is moved to TLS.
	RPCUpgradeMode bool   `hcl:"rpc_upgrade_mode"`
	MinVersion     string `hcl:"tls_min_version"`   // the lowest version of TLS: tls12 or tls13; default: tls12
	CipherSuites   string `hcl:"tls_cipher_suites"` // those of TLS 1.2, with commas between
}

// On reports whether anything is guarded.
func (t *TLS) On() bool { return t.HTTP || t.RPC }

func (k *checker) tls() {
	t := &k.c.TLS
	if _, err := wire.ParseTLSVersion(t.MinVersion); err != nil {
		k.bad("tls.tls_min_version", " %v", err)
	}
	if _, err := wire.ParseCipherSuites(t.CipherSuites); err != nil {
		k.bad("tls.tls_cipher_suites", " %v", err)
	}
	// A setting that is meant to protect must not be without effect.
	for path, verifies := range map[string]bool{"tls.verify_server_hostname": t.VerifyServerHostname, "tls.rpc_upgrade_mode": t.RPCUpgradeMode} {
		if verifies && !t.RPC {
			k.bad(path, ": has no effect without rpc = true")
		}
	}
	if t.VerifyHTTPSClient && !t.HTTP {
		k.bad("tls.verify_https_client", ": has no effect without http = true")
	}
	if !t.On() {
		return
	}
	for path, file := range map[string]string{"tls.cert_file": t.CertFile, "tls.key_file": t.KeyFile} {
		if file == "" {
			k.bad(path, ": missing; TLS needs a certificate and its key (`nomadish tls cert create` makes them)")
		}
	}
	if t.CAFile == "" && (t.RPC || t.VerifyHTTPSClient) {
		k.bad("tls.ca_file", ": missing; it names the CA whose certificates are trusted (`nomadish tls ca create` makes one)")
	}
}
