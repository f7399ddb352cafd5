// The table of zones, each with one curve, and what is behind each.

import { call } from './api.js'
import { bar, byId, cell, el, empty, facts, para, pill, problem, show, svg, table } from './dom.js'
import { titled } from './shell.js'
import { showKey } from './key.js'
import { lately, span, state } from './state.js'
import { count, number, plain, rate, share, time, visible } from './text.js'

const parts = 30 // of a curve
const most = 8 // keys that are listed

const open = new Map() // the zones that are open, by name, each with its most frequent keys

let turn = 0

// updateZones shows what an event has changed. What is not in it is asked for now and then.
export function updateZones() {
  if (++turn % 10 === 0) for (const name of open.keys()) ask(name)
  drawZones()
}

function drawZones() {
  const all = state.zones, text = byId('zones-text').value.toLowerCase()
  byId('zones-filter').hidden = all.length < 12
  const hidden = z => all.length >= 12 && !open.has(z.name) && !z.name.toLowerCase().includes(text)
  const name = ['zones stack', new Set(all.map(z => z.store)).size > 1 ? '' : 'one-store',
    all.some(z => keysOf(z) !== '–') ? '' : 'no-keys']
  const columns = ['Zone', 'Requests/s', 'Refused/s', 'Share refused', 'Keys', 'Store']
  show(byId('zones-body'), all.length ? table(name.join(' '), columns, all.map(z => row(z, hidden(z)))) : none())
  const cells = l => [visible(l.name, 48), number(l.limit), number(l.running), number(l.waiting), number(l.refused),
    l.trend]
  show(byId('adaptive-body'), state.adaptive.length
    ? table('top', ['Adaptive limit', 'At once', 'Running', 'Waiting', 'Refused', 'Now'],
    el('tbody', {}, state.adaptive.map(l => el('tr', {}, cells(l).map(c => el('td', {}, c)))))) : null)
}
byId('zones-text').addEventListener('input', drawZones)

const example = 'rate_limit {\n\tzone clients {\n\t\tkey    {client_ip}\n\t\tevents 100\n\t\twindow 1m\n\t}\n}'
const none = () => el('div', { class: 'empty' }, para('', 'No zones: this Caddy limits no rates.'),
  para('', 'Add a zone to its Caddyfile, and reload it:'), el('pre', { tabindex: 0, 'aria-label': 'Example' }, example))

const windows = { '1s': 'second', '1m': 'minute', '1h': 'hour', '24h': 'day', '1d': 'day' }

// inWords returns a limit for people, and what else there is to say.
function inWords(limit) {
  const [, algorithm, events, window, rest] = /^(\w+) (\d+)(?:\/(\S+))?(.*)$/.exec(limit) ?? []
  if (!events) return [limit, '']
  const n = number(Number(events)), per = windows[window] ?? (/^\D/.test(window) ? window : '')
  return [!window ? `${n} at once` : per ? `${n} per ${per}` : `${n} every ${window}`,
    algorithm.replaceAll('_', ' ') + rest]
}

const keysOf = z => z.in_use !== undefined ? count(z.in_use, 'slot') : z.keys === undefined ? '–' : number(z.keys)

function row(z, hidden) {
  const [limit, how] = inWords(z.limit), now = lately(z, 5), all = lately(z), isOpen = open.has(z.name),
    id = 'zone-' + z.name
  const curve = rates(z)
  return el('tbody', { key: z.name, 'data-zone': z.name, class: z.rollout ? 'trial' : '', hidden },
    el('tr', {},
      el('th', { scope: 'row' },
        el('button', { type: 'button', class: 'open', 'aria-expanded': String(isOpen), 'aria-controls': id,
          click: () => toggle(z) },
          el('span', { class: 'chevron', 'aria-hidden': 'true' }), el('span', { class: 'name' }, visible(z.name, 48))),
        z.rollout ? pill(z.rollout, 'dry') : null,
          el('div', { class: 'limit' }, limit, el('span', { class: 'how' }, how))),
      cell('Requests/s', el('div', { class: 'sparkline' }, picture(curve),
        el('span', { class: 'value' }, perSecond(now.all, now)))),
      cell('Refused/s', perSecond(now.no, now)),
      cell(z.rollout ? 'Would be refused' : 'Share refused', el('div', { class: 'share' }, bar(all.no, all.all),
        el('span', { class: 'value', title: 'Over the last 15 minutes' }, share(all.no, all.all)))),
      cell('Keys', keysOf(z)), cell('Store', visible(z.store, 40))),
    el('tr', { class: 'detail', id, hidden: !isOpen }, el('td', { colspan: 6 }, isOpen ? detail(z, curve) : null)))
}

const perSecond = (n, { seconds }) => rate(seconds ? n / seconds : 0)

// rates returns how many requests came in a second, and how many of these were refused or would have been, in each part
// of the time that is drawn: all that is known, up to 15 minutes.
function rates(z) {
  const { history } = z, end = history.at(-1).at,
    wide = Math.min(span * 1e3, Math.max(parts * 5e3, end - history[0].at))
  const bins = []
  for (let i = 1; i < history.length; i++) {
    const [from, to] = [history[i - 1], history[i]], at = Math.floor((to.at - end + wide) / wide * parts)
    if (at < 0 || to.at === from.at) continue
    const bin = bins[Math.min(at, parts - 1)] ??= { at: to.at, all: 0, no: 0, lasted: 0 }
    bin.all += to.all - from.all
    bin.no += to.no - from.no
    bin.lasted += (to.at - from.at) / 1e3
  }
  return bins.map(b => ({ at: b.at, all: b.all / b.lasted, no: b.no / b.lasted }))
}

// picture draws both on one scale.
function picture(curve) {
  const highest = Math.max(1, ...curve.filter(Boolean).map(b => b.all))
  const draw = what => {
    const [x, y] = [i => (i * 100 / (parts - 1)).toFixed(1), n => (22 - n / highest * 20).toFixed(1)]
    const points = curve.map((b, i) => `${x(i)} ${y(b[what])}`).filter(Boolean)
    const d = points.length > 1 ? 'M' + points.join('L') : ''
    const area = d && `${d}L${points.at(-1).split(' ')[0]} 24L${points[0].split(' ')[0]} 24Z`
    return svg('g', { class: what }, svg('path', { class: 'area', d: area }), svg('path', { class: 'line', d }))
  }
  return svg('svg', { class: 'spark', viewBox: '0 0 100 24', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('path', { class: 'zero', d: 'M0 23.5H100' }), draw('all'), draw('no'))
}

function toggle(z) {
  if (!open.delete(z.name)) {
    open.set(z.name, null)
    ask(z.name)
  }
  drawZones()
}

async function ask(name) {
  let told
  try {
    told = (await call('GET', `top?n=${most}&zone=${encodeURIComponent(name)}`))[0].keys
  } catch (e) {
    told = e
  }
  if (!open.has(name)) return
  open.set(name, told)
  drawZones()
}

// detail shows more about a zone.
function detail(z, curve) {
  const peak = curve.filter(Boolean).reduce((best, b) => b.all > best.all ? b : best, { all: 0 }),
    counted = Object.entries(z.totals).filter(([, n]) => n)
  const figures = pairs => pairs.map(([name, n]) => [name.replaceAll('_', ' '), number(n)])
  const costs = Object.entries(z.costs ?? {}).filter(([, n]) => n)
  return el('div', { class: 'panel' },
    el('div', {}, el('h3', {}, 'Outcomes'),
      counted.length ? facts('outcomes', figures(counted)) : empty('No requests yet.')),
    z.costs ? el('div', {}, el('h3', {}, 'What responses say they cost'), costs.length
      ? facts('outcomes costs', figures([...costs, ['total cost', z.cost_sum ?? 0]])) : empty('No responses yet.'))
        : null,
    el('div', {}, titled('Most frequent keys', 'top', [], [z.name]), top(z, open.get(z.name))),
    el('div', {}, titled('Definition', 'zones', [], [z.name]), facts('stacked', [
      ['Limit', z.limit], ['Store', visible(z.store)],
        ['Key', z.key_form ? visible(z.key_form) : 'none: one limit for all requests'],
      ['If the store does not answer', z.on_store_error],
      ['Most in the last 15 minutes', peak.at ? `${rate(peak.all)} requests per second at ${time(peak.at)}` : '–']])))
}

// top lists keys with the most requests.
function top(z, keys) {
  if (!keys) return empty('Asking …')
  if (keys instanceof Error) return problem(plain(keys.message, 300))
  if (!keys.length) return empty('No requests in the last few minutes.')
  return table('top', ['Key', 'Requests', 'Refused'], el('tbody', {}, keys.map(k => el('tr', {},
    el('td', {}, showKey(k, z), bar(k.requests, keys[0].requests)), el('td', {}, number(k.requests)),
      el('td', {}, number(k.refused))))))
}
