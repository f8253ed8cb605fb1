package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/internal/certs"
	"github.com/nomadish/nomadish/structs"
)

// certOptions are the flags of tls cert create.
type certOptions struct {
	server, client, cli bool
	region, domain      string
	days                int
	caFile, keyFile     string
	dnsNames, ips       listFlag
}

func (o *certOptions) flags(fs *flag.FlagSet) {
	fs.BoolVar(&o.server, "server", false, "for a server")
	fs.BoolVar(&o.client, "client", false, "for a client")
	fs.BoolVar(&o.cli, "cli", false, "for a command line or another program that calls agents")
	fs.StringVar(&o.region, "region", structs.DefaultRegion, "the `region` that it is for")
	fs.StringVar(&o.region, "cluster-region", structs.DefaultRegion, "the same `region`, for scripts made for Nomad")
	fs.StringVar(&o.domain, "domain", structs.CertDomain, "the cluster's `domain`; it names the files")
	fs.IntVar(&o.days, "days", 365, "how many `days` it is valid, unless the CA ends sooner")
	fs.StringVar(&o.caFile, "ca", "", "the CA's `file` (default: DOMAIN-agent-ca.pem)")
	fs.StringVar(&o.keyFile, "key", "", "the `file` of the CA's key (default: DOMAIN-agent-ca-key.pem)")
	fs.Var(&o.dnsNames, "additional-dnsname", "one more DNS `name` to be reached at, beside localhost; repeatable")
	fs.Var(&o.ips, "additional-ipaddress", "one more `IP` to be reached at, beside 127.0.0.1; repeatable")
}

// role is the one that is requested.
func (o *certOptions) role() (string, error) {
	var roles []string
	for _, r := range []struct {
		recorded bool
		role     string
	}{{o.server, structs.CertServer}, {o.client, structs.CertClient}, {o.cli, structs.CertCLI}} {
		if r.recorded {
			roles = append(roles, r.role)
		}
	}
	if len(roles) != 1 {
		return "", errors.New("one of -server, -client and -cli is needed: the role of the certificate")
	}
	return roles[0], nil
}

func (o *certOptions) request() (certs.Request, error) {
	role, err := o.role()
	r := certs.Request{Role: role, Region: o.region, Domain: o.domain, Days: o.days, DNSNames: o.dnsNames}
	if err != nil {
		return r, err
	}
	if o.days < 1 {
		return r, fmt.Errorf("-days %d: must be at least 1", o.days)
	}
	for _, c := range []struct{ flag, value string }{{"region", o.region}, {"domain", o.domain}} {
		if err := checkCertPart(c.flag, c.value); err != nil {
			return r, err
		}
	}
	for _, n := range o.dnsNames {
		if err := checkCertPart("additional-dnsname", strings.TrimPrefix(n, "*.")); err != nil {
			return r, err
		}
	}
	for _, text := range o.ips {
		ip := net.ParseIP(text)
		if ip == nil {
			return r, fmt.Errorf("-additional-ipaddress %q: must be an IP address", text)
		}
		r.IPs = append(r.IPs, ip)
	}
	if o.caFile == "" {
		o.caFile, _ = caFiles(o.domain)
	}
	if o.keyFile == "" {
		_, o.keyFile = caFiles(o.domain)
	}
	return r, nil
}

// create makes the certificate and its files.
func (o *certOptions) create(e *env, r certs.Request) error {
	ca, err := o.authority()
	if err != nil {
		return err
	}
	r.Now = e.now()
	pair, err := ca.Issue(r)
	if err != nil {
		return err
	}
	if r.Role == structs.CertServer {
		e.printf("==> WARNING: A server certificate lets its owner act as a server of region %s:\n"+
			"    read and change all state. Keep it on servers only, as safe as the CA's key.\n", r.Region)
	}
	e.printf("==> Using CA file %s and CA key %s\n", o.caFile, o.keyFile)
	base := r.Region + "-" + r.Role + "-" + r.Domain
	if err := writePair(base+".pem", base+"-key.pem", pair); err != nil {
		return err
	}
	title := map[string]string{structs.CertServer: "Server", structs.CertClient: "Client", structs.CertCLI: "Cli"}[r.Role]
	e.printf("==> %s Certificate saved to %s\n==> %s Certificate key saved to %s\n", title, base+".pem", title, base+"-key.pem")
	if cert, err := certs.ParseCert(pair.Cert); err == nil && cert.NotAfter.Equal(ca.Cert.NotAfter) {
		e.printf("==> WARNING: It is valid until %s only, when its CA ends\n", cert.NotAfter.Format("2006-01-02"))
	}
	return nil
}

func (o *certOptions) authority() (*certs.CA, error) {
	var pair certs.Pair
	var err error
	if pair.Cert, err = readPEM(o.caFile); err != nil {
		return nil, fmt.Errorf("-ca: %w (`nomadish tls ca create` makes one)", err)
	}
	if pair.Key, err = readPEM(o.keyFile); err != nil {
		return nil, fmt.Errorf("-key: %w", err)
	}
	ca, err := certs.ParseCA(pair)
	if err != nil {
		return nil, fmt.Errorf("CA %s with key %s: %w", o.caFile, o.keyFile, err)
	}
	return ca, nil
}

func tlsCertCreate() spec {
	return spec{
		synopsis: "Create a certificate for a server, a client or a command line",
		takes:    nothing, usage: "-server|-client|-cli", example: "-server -region global", local: true,
		details: "The CA in the current directory signs the certificate. It is written to REGION-ROLE-DOMAIN.pem, its key to\n" +
			"REGION-ROLE-DOMAIN-key.pem. The name in the certificate, such as server.global.nomad, states its role; agents check\n" +
			"the role where `verify_server_hostname` is set. Existing files are not overwritten.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o certOptions
			o.flags(fs)
			return func(_ context.Context, e *env, args []string) int {
				r, err := o.request()
				if err != nil {
					return e.usage("%v", err)
				}
				if err := o.create(e, r); err != nil {
					return e.fail(err)
				}
				return exitDone
			}
		},
	}
}

func tlsCertInfo() spec {
	return spec{
		synopsis: "Show the fields of a certificate",
		takes:    "certificate file", usage: "<certificate file>", example: "global-server-nomad.pem", local: true, output: true,
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return func(_ context.Context, e *env, args []string) int {
				cert, err := readCert(args[0])
				if err != nil {
					return e.fail(err)
				}
				info := infoOf(cert)
				if done, code := e.formatted(info); done {
					return code
				}
				ui.Table(e.out, append(info.rows(e.now()),
					[]string{"DNS Names", fmt.Sprint(info.DNSNames)}, []string{"IP Addresses", fmt.Sprint(info.IPAddresses)}))
				return exitDone
			}
		},
	}
}
