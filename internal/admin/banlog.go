package admin

import (
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// logBan logs that an operator has banned a key.
func (z *runningZone) logBan(of store.Selector, ban *store.Override) {
	key := of.String()
	var fields []zap.Field
	if ban.For > 0 {
		fields = append(fields, zap.Time("until", time.Now().Add(ban.For).UTC()))
	}
	if z.mayTry(key, of.IsNetwork()) {
		fields = append(fields, zap.Bool("dry_run", true))
	}
	if ban.Note != "" {
		fields = append(fields, zap.String("note", ban.Note))
	}
	z.logByOperator(logging.Banned, key, fields...)
}

// logUnban logs that an operator has ended the ban of a key.
func (z *runningZone) logUnban(key string) {
	z.logByOperator(logging.BanEnded, key)
}

func (z *runningZone) logByOperator(message, key string, fields ...zap.Field) {
	fields = append([]zap.Field{zap.String("zone", z.Name), zap.String("by", "operator")}, fields...)
	if z.logKey {
		fields = append(fields, zap.String("key", logging.Key(key)))
	}
	logging.Logger().Info(message, fields...)
}
