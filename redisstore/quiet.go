package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// go-redis writes a line to standard error for each failed dial, through a logger that
// all its clients share, so at the rate of the requests when Redis is down. The errors
// reach the caller, who says so once.
func init() { redis.SetLogger(quiet{}) }

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
