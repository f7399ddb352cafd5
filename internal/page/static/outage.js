// The banner while a store does not answer: since when, what its zones do without it, and when it is asked again.

import { byId, el, show } from './dom.js'
import { state } from './state.js'
import { storeState } from './stores.js'
import { number, plain, time, visible, zonesNamed } from './text.js'

let shown = ''

const share = s => s.now.share > 1 ? `, with 1/${number(s.now.share)} of the limit` : ''

// policies say what zones do, by their option on_store_error.
const policies = {
  allow: () => 'all requests pass.',
  deny: () => 'all requests are refused.',
  local: s => `this instance counts alone${share(s)}.`,
}

// updateOutage shows the stores that do not answer. It changes only if something has changed, because it is read out.
export function updateOutage() {
  const failing = state.stores.filter(s => storeState(s)[1] === 'bad')
  const now = JSON.stringify(failing.map(s => [s.name, s.now.since, s.now.share, Boolean(s.now.breaker)]))
  if (now === shown) return
  shown = now
  byId('outage').hidden = !failing.length
  show(byId('outage'), failing.map(banner))
}

function banner(s) {
  const zones = state.zones.filter(z => z.store === s.name), by = Map.groupBy(zones, z => policies[z.on_store_error] ? z.on_store_error : '')
  const lost = zones.filter(z => (z.overrides || z.bans) && z.on_store_error !== 'deny')
  return el('div', {},
    el('h2', {}, visible(s.name, 60), ' does not answer', s.now.since ? ', since ' + time(s.now.since) : ''),
    el('ul', {}, [...by].map(([policy, of]) => el('li', {}, zonesNamed(of.map(z => z.name)), ': ', policy ? policies[policy](s) : plain(of[0].on_store_error, 60))),
      lost.length ? el('li', {}, 'Overrides and bans do not hold until it answers.') : null),
    el('p', {}, s.now.breaker ? 'Caddy asks it again twice a second, and this page shows when it answers.' : 'Caddy asks it again with each request.'))
}
