// The stores: whether they answer, how fast, and who else uses them.

import { chart } from './chart.js'
import { byId, el, pill, setText, show } from './dom.js'
import { latencyBetween, state } from './state.js'
import { count, duration, number, rate, visible } from './text.js'

let cards = []

// drawStores draws all stores again, after a start.
export function drawStores() {
  cards.forEach(c => c.plot?.end())
  if (!state.stores.length) show(byId('stores-body'), el('p', { class: 'empty' }, 'No store: the config has no rate_limit.'))
  else show(byId('stores-body'), (cards = state.stores.map(makeCard)).map(c => c.card))
}

function makeCard(s) {
  const status = el('span'), facts = el('dl'), place = el('div', { class: 'plot' })
  const card = el('article', { class: 'store' }, el('h3', {}, visible(s.name, 60), ' ', status), facts)
  if (s.remote) card.append(el('h4', {}, 'Latency, mean and 99th percentile, since this page was opened'), place)
  const values = new Map()
  const fact = (name, text, help) => {
    if (!values.has(name)) {
      values.set(name, el('dd', {}))
      facts.append(el('div', {}, el('dt', {}, name), values.get(name), el('dd', { class: 'help' }, help)))
    }
    setText(values.get(name), text)
  }
  let plot = null
  return {
    card,
    get plot() { return plot },
    update() {
      const s = state.stores[cards.indexOf(this)], now = s?.now
      if (!now) return
      const [word, kind] = storeState(s)
      if (status.textContent !== word) show(status, pill(word, kind))
      if (!s.remote) {
        const keys = state.zones.filter(z => z.store === s.name && z.keys !== undefined).reduce((n, z) => n + z.keys, 0)
        fact('Keys', number(keys), 'In the memory of this instance, counted twice a minute.')
        fact('Shared with', 'nobody', 'Each instance of a fleet counts for itself. With Redis they count together.')
        return
      }
      const past = s.past[0], minute = latencyBetween(past, now), calls = (now.calls ?? 0) - (past.calls ?? 0)
      fact('Breaker', now.breaker ?? '–', 'closed: Redis is asked. open: Redis is not asked until it answers again.')
      fact('Latency', minute ? `${duration(minute.mean)}, 99 % within ${duration(minute.p99)}` : 'no calls in the last minute', 'Of the decisions in the last minute.')
      fact('Instances', count(now.instances ?? 0, 'instance'), 'That reported to this store in the last few seconds.')
      fact('Calls per 100 decisions', minute && calls > 0 ? rate(Math.min(1, calls / minute.n) * 100) : '–', 'Requests that arrive together share a call.')
      fact('Refused without asking', number(now.deny_hits ?? 0), 'By the deny cache, since this instance started.')
      fact('Lost corrections', number(now.lost ?? 0), 'Refunds and late costs that were given up.')
      const errors = Object.entries(now.errors ?? {})
      fact('Errors', errors.length ? errors.map(([k, n]) => `${k} ${number(n)}`).join(', ') : 'none', 'Requests that Redis did not answer, since this instance started.')
      plot ??= chart(place, [{ label: 'mean' }, { label: '99 %', refused: true }], 'Latency of the store', { height: 120, show: v => duration(v / 1000) })
      plot.draw(s.history)
    },
  }
}

// storeState says how a store is.
export function storeState(s) {
  const now = s.now
  if (!now) return ['unknown', '']
  if (now.breaker === 'open') return ['does not answer', 'bad']
  if (now.failing || now.breaker === 'half-open') return ['failing', 'bad']
  const latest = s.remote && latestOf(s)
  return [!s.remote ? 'in memory' : latest ? 'answers in ' + duration(latest.mean) : 'answers', 'good']
}

// latestOf returns the latency of the last second, or else of the last minute, or null without any calls.
const latestOf = s => s.past.length > 1 ? latencyBetween(s.past.at(-2), s.now) || latencyBetween(s.past[0], s.now) : null

// storeSentence says how the stores are, and whether one does not answer.
export function storeSentence() {
  let bad = false
  const parts = state.stores.filter(s => s.now).map(s => {
    if (storeState(s)[1] === 'bad') {
      bad = true
      return [visible(s.name, 48), ' does not answer. ']
    }
    if (!s.remote) return []
    const latest = latestOf(s)
    return [visible(s.name, 48), latest ? ` answers in ${duration(latest.mean)}. ` : ' answers. ']
  })
  return [parts.flat(), bad]
}

export const updateStores = () => cards.forEach(c => c.update())
