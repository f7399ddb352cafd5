package cli

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
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
and stores, and opens it if this is a terminal and there is a browser.

Caddy's admin endpoint refuses browsers, and a browser cannot open a Unix socket. So this
command passes the browser's requests on, for this one page, until it is interrupted. The
address contains a secret that is new each time: people who know it can do what this page does.

On a server without a browser, name the port, and forward it:
ssh -t -L 2080:localhost:2080 server caddy rate-limit page --listen localhost:2080
`,
		Example: "  caddy rate-limit page\n  caddy rate-limit page --no-open --listen localhost:2080",
		Args:    cobra.NoArgs,
	}
	listen := cmd.Flags().String("listen", "127.0.0.1:0", "The address to serve the page at, on this machine")
	noOpen := cmd.Flags().Bool("no-open", false, "Only print the address")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f, err := newFleet(cmd)
		if err != nil {
			return err
		}
		e := f.asked
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
	fmt.Fprintln(e.err, "The page works as long as this command runs. End it with Ctrl-C.")
	if open {
		defer openBrowser(address)()
	}
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

// openBrowser opens an address in a browser, if there is one. The result removes what that has
// left behind.
func openBrowser(address string) (clean func()) {
	clean = func() {}
	known := runtime.GOOS == "darwin" || runtime.GOOS == "windows"
	if !known && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return clean
	}
	file, err := leadTo(address)
	if err != nil {
		return clean
	}
	clean = func() { os.Remove(file) }
	name, args := "xdg-open", []string{file}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", file}
	}
	if cmd := exec.Command(name, args...); cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
	return clean
}

// leadTo writes a file that leads a browser to an address. All users of a machine see the
// arguments of a command, and only the owner of this file can read the address in it.
func leadTo(address string) (path string, err error) {
	file, err := os.CreateTemp("", "rate-limit-page-*.html")
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(file, "<!doctype html><title>rate limits</title><meta http-equiv=\"refresh\" content=\"0;url=%s\">\n", html.EscapeString(address))
	if err = errors.Join(err, file.Close()); err != nil {
		os.Remove(file.Name())
		return "", err
	}
	return file.Name(), nil
}

var errOtherAddress = errors.New("open the address that caddy rate-limit page has printed last: it is new each time")
