package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

func pageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "page",
		Short: "Shows zones, clients, bans and stores in a browser",
		Long: `
Prints the address of a page that shows zones, the clients that are refused now and why, decisions
and stores. Open it in a browser.

Caddy's admin endpoint refuses browsers, and a browser cannot open a Unix socket. So this
command passes the browser's requests on, for this one page, until it is interrupted. The
address contains a secret that is new each time: people who know it can do what this page does.

On a server without a browser, name the port, and forward it:
ssh -t -L 2080:localhost:2080 server caddy rate-limit page --listen localhost:2080
`,
		Example: "  caddy rate-limit page\n  caddy rate-limit page --listen localhost:2080",
		Args:    cobra.NoArgs,
	}
	listen := cmd.Flags().String("listen", "127.0.0.1:0", "The address to serve the page at, on this machine")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f, err := newFleet(cmd)
		if err != nil {
			return err
		}
		return f.asked.servePage(*listen)
	}
	return cmd
}

// pagePath is the path of the page below that of the admin API.
const pagePath = "page/"

// servePage passes requests of browsers on to the page, until the process is interrupted.
func (e *endpoint) servePage(listen string) error {
	response, err := e.call(http.MethodGet, pagePath, nil, nil)
	if err != nil {
		return err
	}
	response.Body.Close()
	listener, err := listenLocally(listen)
	if err != nil {
		return err
	}
	g, err := newGateway(e.address)
	if err != nil {
		return err
	}
	address := "http://" + listener.Addr().String() + g.prefix + adminapi.Path + pagePath
	fmt.Fprintln(e.out, address)
	fmt.Fprintln(e.err, "The page works as long as this command runs. End it with Ctrl-C.")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := &http.Server{Handler: g, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listenLocally listens at an address of this machine, which no other can reach.
func listenLocally(address string) (net.Listener, error) {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w; write one such as localhost:2080", err)
	}
	if !resolved.IP.IsLoopback() {
		return nil, fmt.Errorf("--listen must be an address that only this machine can reach, such as localhost:2080, got %q; from elsewhere, forward it with ssh -L", address)
	}
	listener, err := net.ListenTCP("tcp", resolved)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return listener, nil
}

var errOtherAddress = errors.New("open the address that caddy rate-limit page has printed last: it is new each time")
