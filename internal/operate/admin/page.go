package admin

import (
	"net/http"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/operate/page"
)

// pagePath is the path of the page and its files, below that of the admin API.
const pagePath = "page/"

// servePage answers with a file of the page.
func servePage(c *adminCall) (any, error) {
	if err := checkPage(); err != nil {
		return nil, err
	}
	_, name, _ := strings.Cut(c.request.URL.Path, "/"+pagePath)
	return nil, page.Serve(c.ResponseWriter, c.request, name)
}

// redirectToPage adds the slash that the addresses of the page's files need.
func redirectToPage(c *adminCall) (any, error) {
	// A relative address, because a proxy may have the page below a path of its own.
	c.ResponseWriter.Header().Set("Location", pagePath)
	c.ResponseWriter.WriteHeader(http.StatusPermanentRedirect)
	return nil, nil
}

// checkPage returns an error if the page is switched off.
func checkPage() error {
	if running().DisablePage {
		return adminError(http.StatusNotFound, "the page is switched off by the global option rate_limit_page off (disable_page)")
	}
	return nil
}
