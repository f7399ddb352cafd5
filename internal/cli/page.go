package cli

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

func pageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "page",
		Short: "Shows all this in a browser",
		Long: `
Prints the address of a page that shows zones, who is refused now and why, decisions
and stores, and opens it if this is a terminal and there is a browser.

Caddy's admin endpoint refuses browsers that come from no page of its own, and a socket
is no address for them. So this command passes their requests on, for this one page,
until it is interrupted. The address is a secret that is new each time: whoever knows it
may do what this page does.

On a server without a browser, name the port, and forward it:
ssh -t -L 2020:localhost:2020 server caddy rate-limit page --listen localhost:2020
`,
		Example: "  caddy rate-limit page\n  caddy rate-limit page --no-open --listen localhost:2020",
		Args:    cobra.NoArgs,
	}
	listen := cmd.Flags().String("listen", "127.0.0.1:0", "The address to serve the page at, on this machine")
	noOpen := cmd.Flags().Bool("no-open", false, "Only print the address")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		e, err := newEndpoint(cmd)
		if err != nil {
			return err
		}
		return e.servePage(*listen, !*noOpen && e.terminal)
	}
	return cmd
}

// pagePath is the path of the page below that of the admin API.
const pagePath = "page/"

// servePage passes requests of browsers on to the page, until the process is interrupted.
func (e *endpoint) servePage(listen string, open bool) error {
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
	fmt.Fprintln(e.err, "The page is there as long as this command runs. End it with Ctrl-C.")
	if open {
		openBrowser(address)
	}
	return http.Serve(listener, g) //nolint:gosec // it serves the person who has started it
}

// listenLocally listens at an address of this machine, which no other can reach.
func listenLocally(address string) (net.Listener, error) {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w; write one such as localhost:2020", err)
	}
	if !resolved.IP.IsLoopback() {
		return nil, fmt.Errorf("--listen must be an address that only this machine can reach, such as localhost:2020, got %q; from elsewhere, forward it with ssh -L", address)
	}
	listener, err := net.ListenTCP("tcp", resolved)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return listener, nil
}

// openBrowser opens an address in a browser, if there is one.
func openBrowser(address string) {
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return
		}
	}
	if cmd := exec.Command(name, args...); cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}

var errOtherAddress = errors.New("open the address that caddy rate-limit page has printed last: it is new each time")
