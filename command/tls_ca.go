package command

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/internal/certs"
	"github.com/nomadish/nomadish/structs"
)

// caFiles are the names of a CA's files.
func caFiles(domain string) (cert, key string) {
	return domain + "-agent-ca.pem", domain + "-agent-ca-key.pem"
}

// caOptions are the flags of tls ca create.
type caOptions struct {
	domain     string
	days       int
	constraint bool
	additional listFlag

	commonName, country, province, locality, street, postal, organization, unit string
}

func (o *caOptions) flags(fs *flag.FlagSet) {
	fs.StringVar(&o.domain, "domain", structs.CertDomain, "the cluster's `domain`; it names the files, and with -name-constraint what may be certified")
	fs.IntVar(&o.days, "days", 1825, "how many `days` the CA is valid")
	fs.BoolVar(&o.constraint, "name-constraint", false,
		"let the CA certify only names under -domain, nomad, localhost and each -additional-domain; this cannot be changed later")
	fs.Var(&o.additional, "additional-domain", "with -name-constraint, one more `domain` that may be certified, such as that of the web UI; repeatable")
	fs.StringVar(&o.commonName, "common-name", "", "the CA's common `name` (default: Nomadish Agent CA and its serial number)")
	fs.StringVar(&o.country, "country", "", "the CA's `country`")
	fs.StringVar(&o.province, "province", "", "the CA's `province`")
	fs.StringVar(&o.locality, "locality", "", "the CA's `locality`")
	fs.StringVar(&o.street, "street-address", "", "the CA's street `address`")
	fs.StringVar(&o.postal, "postal-code", "", "the CA's postal `code`")
	fs.StringVar(&o.organization, "organization", "", "the CA's `organization`")
	fs.StringVar(&o.unit, "organizational-unit", "", "the CA's organizational `unit`")
}

func (o *caOptions) request() (certs.CARequest, error) {
	r := certs.CARequest{Days: o.days}
	if o.days < 1 {
		return r, fmt.Errorf("-days %d: must be at least 1", o.days)
	}
	if err := checkCertPart("domain", o.domain); err != nil {
		return r, err
	}
	for _, d := range o.additional {
		if err := checkCertPart("additional-domain", d); err != nil {
			return r, err
		}
	}
	if len(o.additional) > 0 && !o.constraint {
		return r, errors.New("-additional-domain: has no effect without -name-constraint")
	}
	if o.constraint { // roles are stated under nomad, whatever the domain
		for _, d := range append([]string{o.domain, structs.CertDomain, "localhost"}, o.additional...) {
			if !slices.Contains(r.Domains, d) {
				r.Domains = append(r.Domains, d)
			}
		}
	}
	one := func(s string) []string {
		if s == "" {
			return nil
		}
		return []string{s}
	}
	r.Subject = pkix.Name{
		CommonName: o.commonName, Country: one(o.country), Province: one(o.province), Locality: one(o.locality),
		StreetAddress: one(o.street), PostalCode: one(o.postal), Organization: one(o.organization), OrganizationalUnit: one(o.unit),
	}
	return r, nil
}

func tlsCACreate() spec {
	return spec{
		synopsis: "Create a certificate authority for a cluster",
		usage:    "", example: "-days 730", local: true,
		details: "The certificate is written to nomad-agent-ca.pem, which every agent and command line needs. The key is written to\n" +
			"nomad-agent-ca-key.pem, which signs certificates: keep it off the cluster's machines. Existing files are not\n" +
			"overwritten.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o caOptions
			o.flags(fs)
			return func(_ context.Context, e *env, args []string) int {
				r, err := o.request()
				if err != nil {
					return e.usage("%v", err)
				}
				r.Now = e.now()
				pair, err := certs.NewCA(r)
				if err != nil {
					return e.fail(err)
				}
				certFile, keyFile := caFiles(o.domain)
				if err := writePair(certFile, keyFile, pair); err != nil {
					return e.fail(err)
				}
				e.printf("==> CA certificate saved to: %s\n==> CA certificate key saved to: %s\n", certFile, keyFile)
				return exitDone
			}
		},
	}
}

func tlsCAInfo() spec {
	return spec{
		synopsis: "Show the fields of a CA certificate",
		usage:    "[<CA file>]", example: "nomad-agent-ca.pem", local: true, output: true,
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return func(_ context.Context, e *env, args []string) int {
				if len(args) > 1 {
					return e.usage("one CA file is taken, %d are given", len(args))
				}
				file, _ := caFiles(structs.CertDomain)
				if len(args) == 1 {
					file = args[0]
				}
				cert, err := readCert(file)
				if err != nil {
					return e.fail(err)
				}
				if !cert.IsCA {
					return e.fail(fmt.Errorf("%s: is no certificate authority; `nomadish tls cert info %s` shows it", file, file))
				}
				info := infoOf(cert)
				if done, code := e.formatted(info); done {
					return code
				}
				ui.Table(e.out, append(info.rows(e.now()), []string{"Permitted DNS Domains", fmt.Sprint(info.PermittedDNSDomains)}))
				return exitDone
			}
		},
	}
}
