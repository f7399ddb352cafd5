package cli

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

func pageCommand(cmd *cobra.Command) {
	listen := cmd.Flags().String("listen", "127.0.0.1:0", "The address to serve the page at, on this machine")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := newInstance(cmd)
		if err != nil {
			return err
		}
		return c.servePage(*listen)
	}
}

// pagePath is the path of the page below that of the admin API.
const pagePath = "page/"

// servePage passes requests of browsers on to the page, until the process is interrupted.
func (c *instance) servePage(listen string) error {
	response, err := c.call(http.MethodGet, pagePath, nil, nil)
	if err != nil {
		return err
	}
	response.Body.Close()
	if !isLocal(listen) {
		return fmt.Errorf("--listen must be an address that only this machine can reach, such as localhost:2080, got %q; from elsewhere, forward it with ssh -L", listen)
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	g, err := newGateway(c.address)
	if err != nil {
		return err
	}
	address := "http://" + listener.Addr().String() + g.prefix + adminapi.Path + pagePath
	fmt.Fprintln(c.out, address)
	fmt.Fprintln(c.err, "The page works as long as this command runs. End it with Ctrl-C.")
	return (&http.Server{Handler: g, ReadHeaderTimeout: time.Minute}).Serve(listener)
}

var errOtherAddress = errors.New("open the address that caddy rate-limit page has printed last: it is new each time")

// gateway passes requests of a browser on to the admin API. It takes the place of the checks of the
// admin endpoint: the command shows its secret prefix to
// people, and the page of another site does not know it.
type gateway struct {
	prefix string
	proxy  httputil.ReverseProxy
}

// newGateway returns a gateway to the admin endpoint at an address.
func newGateway(address string) (*gateway, error) {
	to, err := caddy.ParseNetworkAddress(address)
	if err == nil && to.PortRangeSize() > 1 {
		err = errors.New("it has several ports")
	}
	if err != nil {
		return nil, fmt.Errorf("the requests of a browser cannot be passed on to the admin endpoint at %s: %w", address, err)
	}
	host := to.JoinHostPort(0)
	origin := "http://" + host
	if to.IsUnixNetwork() {
		host, origin = "127.0.0.1", ""            // what Caddy expects at a socket, where it checks no origin
		to.Host, _, _ = strings.Cut(to.Host, "|") // the permissions of the socket
	}
	g := &gateway{prefix: "/" + strings.ToLower(rand.Text())}
	g.proxy = httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", host, host
			for name := range r.Out.Header {
				if name == "Referer" || name == "Cookie" || strings.HasPrefix(name, "Sec-") {
					r.Out.Header.Del(name)
				}
			}
			if r.Out.Header.Del("Origin"); origin != "" {
				r.Out.Header.Set("Origin", origin)
			}
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header.Del("Access-Control-Allow-Origin")
			return nil
		},
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, to.Network, to.JoinHostPort(0))
			},
			DisableCompression: true, // the browser says what it takes
		},
		ErrorLog: log.New(io.Discard, "", 0), // the browser is told
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			refuse(w, http.StatusBadGateway, fmt.Errorf("no answer from Caddy at %s: %w", address, err))
		},
	}
	return g, nil
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secret, path := r.URL.EscapedPath(), ""
	if len(secret) > len(g.prefix) {
		secret, path = secret[:len(g.prefix)], secret[len(g.prefix):]
	}
	switch origin := r.Header.Get("Origin"); {
	case subtle.ConstantTimeCompare([]byte(secret), []byte(g.prefix)) == 0:
		refuse(w, http.StatusForbidden, errOtherAddress)
	case origin != "" && origin != "http://"+r.Host, !isLocal(r.Host):
		refuse(w, http.StatusForbidden, fmt.Errorf("the request comes from another site, %q", origin))
	case !strings.HasPrefix(path, adminapi.Path):
		refuse(w, http.StatusNotFound, fmt.Errorf("the page is at %s", g.prefix+adminapi.Path+pagePath))
	default:
		http.StripPrefix(g.prefix, &g.proxy).ServeHTTP(w, r)
	}
}

// isLocal reports whether a host, perhaps with a port, is a name of this machine, as a browser has it. With ssh -L the port
// may be another.
func isLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// refuse answers with an error as the admin endpoint has it.
func refuse(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}
