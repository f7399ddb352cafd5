// Overrides and bans of keys that are refused. The stream does not have them, so they are asked for: once
// for a key, as long as it is refused in the same way.

import { call, zonePath } from './api.js'
import { queryOf } from './key.js'
import { state } from './state.js'

const pause = 10e3 // before a key is asked for again

let asking = false // one question at a time

// learn asks about a key that is banned, or has another limit than its zone.
export function learn(r) {
  const z = r.zone, quota = r.last?.decision?.quota
  const how = r.last?.outcome === 'banned' ? 'banned' : z.overrides && z.events && quota !== undefined && quota !== z.events ? String(quota) : ''
  if (!how || r.key.key_truncated) {
    r.ruling = null
    return
  }
  const known = r.ruling?.how === how ? r.ruling : null
  if (asking || known && !(known.until < state.now && known.asked < state.now - pause)) return
  asking = true
  const ruling = r.ruling = { how, asked: state.now, until: 0 }
  call('GET', zonePath(z, '/key') + queryOf(r.key)).then(k => {
    const end = rule => !rule?.ends_in ? Infinity : state.now + rule.ends_in * 1000
    Object.assign(ruling, { override: k.override?.kind === 'limit' && !k.override.elsewhere ? k.override : null, overrideEnds: end(k.override), ban: k.ban, banEnds: end(k.ban) })
    ruling.until = Math.min(ruling.overrideEnds, ruling.banEnds)
  }, () => { /* it is asked for again */ }).finally(() => { asking = false })
}
