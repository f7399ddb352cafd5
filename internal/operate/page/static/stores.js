// The stores, each in a line: whether it answers, how fast, and who else uses it. If one does not answer, a banner says
// what its zones do without it. And the other instances.

import { byId, el, pill, setText, show } from './dom.js'
import { titled } from './shell.js'
import { state } from './state.js'
import { count, duration, number, plain, rate, time, visible } from './text.js'

const troubled = s => s.failing || Boolean(s.breaker) && s.breaker !== 'closed'

// answers says how a store is.
function answers(s) {
  if (troubled(s)) return s.breaker === 'open' ? 'does not answer' : 'failing'
  if (!s.latency) return 'in memory'
  return s.latency.count ? 'answers in ' + duration(s.latency.p50) : 'answers'
}

function line(s) {
  const errors = Object.entries(s.errors ?? {}).filter(([, n]) => n).map(([kind, n]) => `${kind} ${number(n)}`)
  const parts = !s.latency ? [count(s.keys ?? 0, 'key'), 'shared with nobody: each instance counts for itself'] : [
    s.latency.count > 0 && `99 % within ${duration(s.latency.p99)} in the last minute`,
    count(s.instances ?? 0, 'instance'),
    s.breaker && `breaker ${s.breaker}`,
    s.deny_cache_hits > 0 && `${number(s.deny_cache_hits)} refused without asking`,
    s.lost_corrections > 0 && `${number(s.lost_corrections)} lost corrections`,
    errors.length > 0 && `requests without an answer: ${errors.join(', ')}`,
  ]
  return el('div', { class: 'store' },
    el('h3', {}, visible(s.name, 60), ' ', pill(answers(s), troubled(s) ? 'bad' : 'good')),
    el('p', { class: 'under' }, parts.filter(Boolean).join(' · ')))
}

// storeSentence says how the stores are, and whether one does not answer.
export function storeSentence() {
  const said = state.stores.filter(s => s.latency).map(s => [visible(s.name, 48),
    ` ${troubled(s) ? 'does not answer' : answers(s)}. `])
  return [said, state.stores.some(troubled)]
}

// zonesNamed names zones in front of what holds for all of them.
export const zonesNamed = names => [names.length > 1 ? 'Zones ' : 'Zone ',
  names.slice(0, 5).map((n, i) => [i ? ', ' : '', visible(n, 48)]),
    names.length > 5 ? ` and ${number(names.length - 5)} more` : '']

// policies say what zones do, by their option on_store_error.
const policies = {
  allow: () => 'all requests pass.',
  deny: () => 'all requests are refused.',
  local: parts => `this instance counts alone${parts > 1 ? `, with 1/${number(parts)} of the limit` : ''}.`,
}

function banner(s) {
  const zones = state.zones.filter(z => z.store === s.name), by = Map.groupBy(zones, z => z.on_store_error)
  const lost = zones.some(z => (z.overrides || z.bans) && z.on_store_error !== 'deny')
  const says = policy => policies[policy]?.(s.configured_instances || s.instances) ?? plain(policy, 60)
  return el('div', {},
    el('h2', {}, visible(s.name, 60), ' does not answer', s.failing_since ? ', since ' + time(s.failing_since) : ''),
    el('ul', {}, [...by].map(([policy, of]) => el('li', {}, zonesNamed(of.map(z => z.name)), ': ', says(policy))),
      lost ? el('li', {}, 'Overrides and bans of single keys do not apply until it answers.') : null),
    el('p', {}, s.breaker && s.breaker !== 'closed'
      ? 'Caddy asks it again twice a second, and this page shows when it answers.'
      : 'Caddy asks it again with each request.'))
}

const words = {
  here: 'this one', reports: 'reports', silent: 'silent', left: 'has left', mute: 'does not report',
}

function member(i) {
  const gone = i.state === 'silent' || i.state === 'left'
  return el('li', {}, visible(i.name, 60), ' ',
    pill(words[i.state] ?? i.state, i.state === 'here' || i.state === 'reports' ? 'good' : 'bad'),
    ` ${rate(i.rate)} requests per second`, gone ? `, last report ${duration(i.age)} ago` : '',
    i.differs?.length ? [', another config: ', i.differs.slice(0, 5).map((z, n) => [n ? ', ' : '', visible(z, 40)])]
      : '')
}

// drawStores shows the stores, those that do not answer again in a banner, and the instances if the page is about all.
export function drawStores() {
  const on = byId('fleet-on').checked, all = on ? state.instances : []
  show(byId('stores-body'), state.stores.length ? state.stores.map(line)
    : el('p', { class: 'empty' }, 'No store: the config has no rate_limit.'))
  const failing = state.stores.filter(troubled)
  byId('outage').hidden = !failing.length
  show(byId('outage'), failing.map(banner)) // what is the same is not read out again
  byId('fleet').hidden = !on && !state.stores.some(s => s.instances > 1)
  setText(byId('counted'), on ? `Counts are of ${count(all.length, 'instance')}; those of others are up to five seconds old.`
    : 'All counts are for this instance only.')
  show(byId('instances'), all.length
    ? [titled('Instances', 'zones'), el('ul', { class: 'instances' }, all.map(member))] : null)
}
