// How an action on a key is taken back: the rule that it had before comes back.

import { call, zonePath } from './api.js'
import { queryOf } from './key.js'

// undoOf returns a function that takes back an action which is about to be done, or null if that cannot be. What a
// key has used, refusals, bans by a zone, and rules of networks and groups do not come back.
export async function undoOf(name, z, k) {
  if (name === 'reset' || k.network || k.group) return null
  const path = rest => zonePath(z, rest) + queryOf(k)
  const was = ownOf((await call('GET', path('/key'))).override, k), at = Date.now()
  if (!was) return name === 'unban' ? null : () => call('DELETE', path(name === 'ban' ? '/key/ban' : '/key/override'))
  if (was.elsewhere) return null
  const rule = () => {
    const left = was.ends_in ? was.ends_in - (Date.now() - at) / 1000 : 0
    return { ...was.ends_in ? { for: Math.max(1, Math.ceil(left)) + 's' } : {}, ...was.note ? { note: was.note } : {} }
  }
  if (was.kind === 'banned') return () => call('PUT', path('/key/ban'), rule())
  return () => call('PUT', path('/key/override'), { ...rule(), ...was.kind === 'exempt' ? { exempt: true } : { limit: was.limit } })
}

// ownOf returns the override of a key that is not one of a network around it, or of a group.
const ownOf = (o, k) => o && !o.group && (!o.network || o.network === k.network) ? o : null
