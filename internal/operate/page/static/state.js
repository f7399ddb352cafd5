// What the stream has told: how zones and stores are now, 15 minutes of what zones have counted, and who was refused
// lately. Panels read it, and are drawn again after each event.

import { idOf } from './key.js'

export const span = 900 // seconds of history

export const state = {
  start: null, // the first event of the stream
  zones: [], // as the API shows them, with what is kept of each
  stores: [],
  adaptive: [], // the limits of adaptive_concurrency
  instances: [], // of the fleet, if that is shown
  now: 0, // Caddy's clock at the last event, in milliseconds
  came: 0, // when the last event came, by the browser's clock
  connected: false,
  silentSince: Date.now(), // while not connected
  decisions: [], // the newest last
  skipped: 0,
}

// begin takes the first event. It returns whether this is a new Caddy, or how the one before has come back.
export function begin(start) {
  const before = state.start, restarted = before && before.process !== start.process
  state.start = start
  if (restarted) Object.assign(state, { zones: [], decisions: [] })
  return !before ? 'new' : restarted ? 'restarted' : 'reloaded'
}

export const zoneNamed = name => state.zones.find(z => z.name === name)

const busy = instances => instances.filter(i => i.requests).map(i => i.id).join()

// second takes another event.
export function second(e) {
  const instances = e.instances ?? [], joined = busy(instances) !== busy(state.instances)
  const before = new Map(state.zones.map(z => [z.name, z]))
  Object.assign(state, {
    now: Date.parse(e.time), came: Date.now(), instances, stores: e.stores, adaptive: e.adaptive,
      skipped: e.skipped ?? 0,
    zones: e.zones.map(z => described(z, before.get(z.name))),
  })
  for (const z of state.zones) count(z, joined)
  for (const t of e.top ?? []) noteTop(t)
  for (const d of e.refused ?? []) noteRefusal(d)
  state.decisions = [...state.decisions, ...e.decisions ?? []].slice(-300)
}

// described adds to a zone what is kept of it from event to event, and what its definition says.
function described(z, { history = [], refusing = new Map(), topped = false } = {}) {
  const has = option => z.uses.some(use => use[option])
  const made = {
    ...z, history, refusing, topped,
    parts: z.key_form?.match(/\{[^{}]*\}/g) ?? [], overrides: has('overrides'), bans: has('ban'),
    events: Number(/^\w+ (\d+)(\/|$)/.exec(z.limit)?.[1] ?? 0),
  }
  for (const entry of refusing.values()) entry.zone = made
  return made
}

const refusedOf = z => z.totals.limited + z.totals.banned + z.totals.rejected + z.totals.dry_run

// count notes what a zone has counted by now. What an instance had counted before the page heard of it is no rate, and
// shows nobody who is refused now.
function count(z, joined) {
  if (joined) z.topped = false
  const now = { at: state.now, all: Object.values(z.totals).reduce((a, b) => a + b, 0), no: refusedOf(z) }
  const last = z.history.at(-1)
  if (!last || now.at - last.at > 15e3) z.history = recalled(state.start.history?.[z.name], now)
  else if (joined || now.all < last.all) {
    const [all, no] = [now.all - last.all, now.no - last.no]
    z.history = z.history.map(s => ({ at: s.at, all: s.all + all, no: s.no + no }))
  }
  z.history.push(now)
  while (z.history[0].at < now.at - span * 1e3) z.history.shift()
}

// recalled is the history of what happened before the page was opened.
function recalled(past, { all, no }) {
  if (!past) return []
  const made = [{ at: Date.parse(past.end), all, no }]
  for (let i = past.requests.length - 1; i >= 0; i--) {
    const { at, all, no } = made[0]
    made.unshift({ at: at - past.step * 1e3, all: all - past.requests[i], no: no - past.refused[i] })
  }
  return made
}

// lately returns what a zone has counted in the last seconds, or in all that are known: requests, those that were
// refused or would have been, and how many seconds that were.
export function lately(z, seconds = span) {
  const end = z.history.at(-1), from = z.history.findLast(s => s.at <= end.at - seconds * 1e3) ?? z.history[0]
  return { all: end.all - from.all, no: end.no - from.no, seconds: (end.at - from.at) / 1e3 }
}

const entryOf = (z, k) => z.refusing.get(idOf(k))

function entryMade(z, k) {
  const made = { zone: z, key: k, count: 0, dry: 0, requests: 0, seen: 0, wait: 0, last: null, done: null }
  if (!entryOf(z, k)) z.refusing.set(idOf(k), made)
  if (z.refusing.size > 200) z.refusing.delete(z.refusing.keys().next().value) // the oldest
  return entryOf(z, k)
}

// noteTop takes the keys of a zone that were refused most. A count that has grown shows that a key is
// being refused now.
function noteTop(top) {
  const z = zoneNamed(top.zone), listed = new Set()
  for (const k of top.keys) {
    const entry = entryMade(z, k)
    listed.add(entry)
    if (entry.done && !entry.done.counted) {
      entry.done.counted = state.now > entry.done.at // with what came before the action
    } else if (z.topped && k.refused > entry.count + entry.dry) {
      Object.assign(entry, { seen: Math.max(entry.seen, state.now), done: null })
    }
    Object.assign(entry, { key: k, count: 0, dry: 0, requests: k.requests, plan: k.plan })
    entry[k.dry_run ? 'dry' : 'count'] = k.refused
  }
  z.topped = true
  for (const [id, entry] of z.refusing) {
    if (!listed.has(entry) && entry.seen < state.now - 60e3) z.refusing.delete(id)
  }
}

// noteDone takes an action on a key: what was known of its refusals no longer holds. The mark says what
// was done, if the next request may pass.
export function noteDone(z, k, mark) {
  const entry = entryOf(z, k)
  if (entry) entry.wait = 0
  if (entry && mark) entry.done = { at: state.now + Date.now() - state.came, mark }
}

// noteRefusal takes a refusal in full, which says how long the wait is and who asked.
function noteRefusal(d) {
  const z = zoneNamed(d.zone)
  if (!z) return
  const entry = entryMade(z, d), when = Date.parse(d.time)
  Object.assign(entry, { seen: Math.max(entry.seen, when), last: d })
  if (!entry.count && !entry.dry) entry[d.outcome === 'dry_run' ? 'dry' : 'count'] = 1
  if (entry.done && when <= entry.done.at) return
  entry.done = null
  entry.wait = !d.decision ? 0 : d.decision.never ? Infinity : when + (d.decision.retry_after ?? 0) * 1000
}
