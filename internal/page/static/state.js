// What the stream has told: zones and stores of the running config, their counts, and 15 minutes of
// rates. Views read it, and are called after each event.

import { idOf } from './key.js'

export const span = 900 // seconds of history

// shown is how many seconds of a history are drawn: more and more, so that its beginning is seen, too.
export const shown = history => Math.min(span, Math.max(60, (history.times.at(-1) ?? 0) - (history.times[0] ?? 0)))

export const refusals = ['limited', 'banned', 'rejected']

export const state = {
  start: null, // the first event of the stream
  zones: [], // by index
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

const histories = new Map() // of zones by name, and of stores, because a reload does not end them

function historyOf(name, width) {
  const known = histories.get(name)
  if (known) return known
  const made = { times: [], values: Array.from({ length: width }, () => []) }
  histories.set(name, made)
  return made
}

// note adds values at a time, and forgets old ones.
function note(history, at, values) {
  history.times.push(at)
  values.forEach((v, i) => history.values[i].push(v))
  while (history.times.length > 1 && history.times[0] < at - span) {
    history.times.shift()
    history.values.forEach(v => v.shift())
  }
}

// recall puts what happened before the page was opened into a history, unless the page has seen it itself.
function recall(history, past) {
  const end = past && past.end / 1000
  if (!past || history.times.length && history.times.at(-1) > end - 3 * past.step) return
  history.times = past.requests.map((_, i) => end - (past.requests.length - 1 - i) * past.step)
  history.values = [...[past.requests, past.refused].map(counts => counts.map(n => n / past.step)), past.requests.map(() => past.step)]
}

// begin takes the first event. It returns whether this is a new Caddy, or how the one that was shown before has come back.
export function begin(start) {
  const before = state.start
  const restarted = before && before.process !== start.process
  if (restarted) histories.clear()
  state.start = start
  state.zones = start.zones.map((z, i) => ({
    ...z, index: i, history_before: z.history, totals: null, rates: { all: 0, refused: 0, dry: 0 }, samples: restarted ? [] : state.zones.find(o => o.name === z.name)?.samples ?? [],
    refusing: restarted ? new Map() : state.zones.find(o => o.name === z.name)?.refusing ?? new Map(), history: historyOf('zone ' + z.name, 3),
  }))
  for (const z of state.zones) {
    recall(z.history, z.history_before)
    for (const entry of z.refusing.values()) entry.zone = z
  }
  state.stores = start.stores.map((s, i) => ({ ...s, index: i, now: null, past: [], history: historyOf(`store ${i} ${s.name}`, 2) }))
  if (restarted) state.decisions = []
  return !before ? 'new' : restarted ? 'restarted' : 'reloaded'
}

const at = (totals, outcome) => totals[state.start.outcomes.indexOf(outcome)]
const sum = totals => totals.reduce((a, b) => a + b, 0)
const refusedOf = totals => refusals.reduce((n, o) => n + at(totals, o), 0)

// second takes another event.
export function second(e) {
  const passed = state.now ? Math.max(0.2, (e.time - state.now) / 1000) : 0
  state.now = e.time
  state.came = Date.now()
  state.adaptive = e.adaptive ?? []
  const joined = e.instances && e.instances.filter(i => i.requests).map(i => i.id).join() !== state.instances.filter(i => i.requests).map(i => i.id).join()
  if (e.instances) state.instances = e.instances
  for (const z of state.zones) {
    const before = z.totals, totals = e.totals?.[z.index]
    if (totals) z.totals = totals
    z.keys = e.keys?.[z.index] ?? z.keys
    z.inUse = e.in_use?.[z.index]
    Object.assign(z, e.costs?.[z.index])
    z.totals ??= state.start.outcomes.map(() => 0)
    const changed = before && totals && passed && !joined // what an instance had counted before is no rate
    z.rates = {
      all: changed ? (sum(totals) - sum(before)) / passed : 0,
      refused: changed ? (refusedOf(totals) - refusedOf(before)) / passed : 0,
      dry: changed ? (at(totals, 'dry_run') - at(before, 'dry_run')) / passed : 0,
    }
    if (before) note(z.history, e.time / 1000, [z.rates.all, z.rates.refused + z.rates.dry, passed])
  }
  for (const t of e.top ?? []) noteTop(state.zones[t.index], t, e.time)
  for (const d of e.refused ?? []) noteRefusal(d)
  for (const d of e.decisions ?? []) {
    const z = zoneNamed(d.zone)
    if (z && d.decision?.quota > 0) z.samples.push({ at: e.time, left: d.decision.remaining / d.decision.quota })
  }
  for (const z of state.zones) {
    while (z.samples.length && (z.samples[0].at < e.time - 60e3 || z.samples.length > 400)) z.samples.shift()
  }
  state.skipped = e.skipped ?? 0
  state.decisions.push(...e.decisions ?? [])
  state.decisions.splice(0, state.decisions.length - 300)
  e.stores.forEach((now, i) => noteStore(state.stores[i], now, e.time))
}

// countsOf returns how many requests a zone has had in a number of seconds, or all that are known, and how many of them
// were refused or would have been.
export function countsOf(history, seconds = span) {
  const { times, values: [all, refused, lasted] } = history, after = (times.at(-1) ?? 0) - seconds
  let requests = 0, no = 0
  for (let i = times.length - 1; i >= 0 && times[i] > after; i--) {
    requests += all[i] * lasted[i]
    no += refused[i] * lasted[i]
  }
  return [Math.round(requests), Math.round(no)]
}

export const zoneNamed = name => state.zones.find(z => z.name === name)

const refusingOf = (z, k, make) => {
  const id = idOf(k)
  if (!z.refusing.has(id) && make) z.refusing.set(id, { zone: z, key: k, count: 0, dry: 0, requests: 0, seen: 0, wait: 0, last: null, done: null })
  return z.refusing.get(id)
}

// noteTop takes the keys of a zone that were refused most. A count that has grown shows that a key is
// being refused now.
function noteTop(z, top, now) {
  const field = top.by === 'refused' ? 'count' : 'dry', counted = top.by === 'refused' ? 'refused' : 'dry_run'
  const listed = new Set()
  for (const k of top.keys) {
    const n = k[counted] ?? 0
    if (n === 0) continue
    const entry = refusingOf(z, k, true)
    listed.add(entry)
    if (entry.done && !entry.done.counted) entry.done.counted = now > entry.done.at // with what came before the action
    else if (z.topped && n > entry[field]) {
      entry.seen = Math.max(entry.seen, now)
      entry.done = null
    }
    Object.assign(entry, { zone: z, key: k, [field]: n, requests: k.requests, plan: k.plan })
  }
  z.topped = true
  bound(z)
  for (const [id, entry] of z.refusing) {
    if (!listed.has(entry) && entry[field] > 0 && entry.seen < now - 60e3) z.refusing.delete(id)
  }
}

// noteDone takes an action on a key: what was known of its refusals no longer holds. The mark says what
// was done, if the next request may pass.
export function noteDone(z, k, mark) {
  const entry = refusingOf(z, k)
  if (!entry) return
  entry.wait = 0
  if (mark) entry.done = { at: state.now + Date.now() - state.came, mark }
}

// noteRefusal takes a refusal in full, which says how long the wait is and who asked.
function noteRefusal(d) {
  const z = zoneNamed(d.zone)
  if (!z) return
  const entry = refusingOf(z, d, true), when = Date.parse(d.time)
  entry.seen = Math.max(entry.seen, when)
  entry.last = d
  if (!entry.count && !entry.dry) entry[d.outcome === 'dry_run' ? 'dry' : 'count'] = 1
  if (entry.done && when <= entry.done.at) return
  entry.done = null
  if (d.decision) entry.wait = d.decision.never ? Infinity : when + (d.decision.retry_after ?? 0) * 1000
  else entry.wait = 0
  bound(z)
}

// bound forgets the oldest keys, if there are too many.
function bound(z) {
  while (z.refusing.size > 200) z.refusing.delete(z.refusing.keys().next().value)
}

function noteStore(s, now, time) {
  if (!s) return
  s.past.push({ time, ...now })
  while (s.past.length > 2 && s.past[0].time < time - 60e3) s.past.shift()
  s.now = now
  if (!now.latency) return
  const before = s.past.at(-2)
  const latest = before && latencyBetween(before, now)
  note(s.history, time / 1000, [latest ? latest.mean * 1000 : null, latest ? latest.p99 * 1000 : null])
}

// latencyBetween returns the latency of the calls between two states of a store, or null without any.
export function latencyBetween(a, b) {
  const counts = b.latency.map((n, i) => n - a.latency[i]), n = sum(counts)
  if (n <= 0) return null
  let below = 0
  const i = counts.findIndex(c => (below += c) >= 0.99 * n)
  return { n, mean: ((b.sum ?? 0) - (a.sum ?? 0)) / n, p99: state.start.bounds[Math.min(i, state.start.bounds.length - 1)] }
}
