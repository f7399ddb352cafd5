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

func pageCommand(cmd *cobra.Command) {
	listen := cmd.Flags().String("listen", "127.0.0.1:0", "The address to serve the page at, on this machine")
	asksOne(cmd, func(c *instance, _ []string) error { return c.servePage(*listen) })
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
	listener, err := listenLocally(listen)
	if err != nil {
		return err
	}
	g, err := newGateway(c.address)
	if err != nil {
		return err
	}
	address := "http://" + listener.Addr().String() + g.prefix + adminapi.Path + pagePath
	fmt.Fprintln(c.out, address)
	fmt.Fprintln(c.err, "The page works as long as this command runs. End it with Ctrl-C.")
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
