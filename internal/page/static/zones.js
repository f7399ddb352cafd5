// The table of zones, and what is behind each.

import { call, zonePath } from './api.js'
import { byId, el, pill, setText, show, svg } from './dom.js'
import { chart } from './chart.js'
import { titled } from './commands.js'
import { showKey } from './key.js'
import { countsOf, shown, state } from './state.js'
import { count, limitInWords, number, plain, rate, share, visible } from './text.js'

const rows = new Map() // by name
let layout = '' // of the table that is shown
let table = null

// drawZones draws all zones again, after a start.
export function drawZones() {
  const body = byId('zones-body')
  byId('zones-filter').hidden = state.zones.length < 12
  const names = JSON.stringify(state.zones.map(z => [z.name, z.limit, z.rollout, z.store]))
  if (!state.zones.length) {
    layout = ''
    table = null
    show(body, el('div', { class: 'empty' }, el('p', {}, 'No zones: this Caddy limits no rates.'),
      el('p', {}, 'Add a zone to its Caddyfile, and reload it:'), el('pre', { tabindex: 0, 'aria-label': 'Example' }, 'rate_limit {\n\tzone clients {\n\t\tkey    {client_ip}\n\t\tevents 100\n\t\twindow 1m\n\t}\n}')))
    return
  }
  if (names === layout) return
  layout = names
  const open = new Set([...rows.values()].filter(r => r.open).map(r => r.name))
  rows.clear()
  seen.disconnect()
  const classes = ['zones stack', state.stores.length > 1 ? '' : 'one-store', state.zones.some(z => z.slots) || state.stores.some(s => !s.remote) ? '' : 'no-keys']
  table = el('table', { class: classes.join(' ') },
    el('thead', {}, el('tr', {}, ['Zone', 'Requests/s', 'Refused/s', 'Share refused', 'Keys', 'Store'].map((t, i) => el('th', { scope: 'col', class: 'c' + i }, t)))),
    state.zones.map(z => {
      const row = makeRow(z)
      rows.set(z.name, row)
      if (open.has(z.name)) row.toggle()
      return row.body
    }))
  show(body, table)
  filter()
  updateZones()
}

// seen notes which rows are on the screen: only these are drawn each second.
const seen = new IntersectionObserver(entries => {
  for (const e of entries) {
    const row = rows.get(e.target.dataset.zone)
    if (row) row.visible = e.isIntersecting
    if (row?.visible) row.update()
  }
})

const zoneOf = name => state.zones.find(z => z.name === name)

function spark(label) {
  const line = svg('path', { class: 'line' }), area = svg('path', { class: 'area' })
  const picture = svg('svg', { class: 'spark', viewBox: '0 0 100 24', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, svg('path', { class: 'zero', d: 'M0 23.5H100' }), area, line)
  const value = el('span', { class: 'value' })
  const cell = el('td', { 'data-label': label }, el('div', { class: 'sparkline' }, picture, value))
  return {
    cell,
    draw(history, values, now, text) {
      setText(value, text)
      const bins = new Array(50).fill(null), t = history.times, end = t.at(-1) ?? 0, wide = shown(history)
      for (let i = 0; i < t.length; i++) {
        const b = Math.min(49, Math.max(0, Math.floor((t[i] - end + wide) / wide * 50)))
        bins[b] = Math.max(bins[b] ?? 0, values[i])
      }
      const most = Math.max(1, ...bins), points = []
      bins.forEach((v, i) => { if (v !== null) points.push(`${(i * 100 / 49).toFixed(1)} ${(22 - v / most * 20).toFixed(1)}`) })
      const d = points.length > 1 ? 'M' + points.join('L') : ''
      if (line.getAttribute('d') === d) return
      line.setAttribute('d', d)
      area.setAttribute('d', d && `${d}L${points.at(-1).split(' ')[0]} 24L${points[0].split(' ')[0]} 24Z`)
    },
  }
}

function makeRow(z) {
  const [limit, how] = limitInWords(z.limit)
  const requests = spark('Requests/s'), refused = spark('Refused/s')
  refused.cell.classList.add('refusals')
  const part = el('span', { class: 'value', title: 'Over the last 15 minutes' }), bar = el('span', { class: 'fill' }), keys = el('td', { 'data-label': 'Keys', class: 'c4' })
  const detail = el('td', { colspan: 6 }), under = el('tr', { class: 'detail', hidden: true }, detail)
  const id = 'zone-' + z.index
  const button = el('button', { type: 'button', class: 'open', 'aria-expanded': 'false', 'aria-controls': id, click: () => row.toggle() },
    el('span', { class: 'chevron', 'aria-hidden': 'true' }), el('span', { class: 'name' }, visible(z.name, 48)))
  under.id = id
  bar.style.width = '0'
  const body = el('tbody', { 'data-zone': z.name, class: z.rollout ? 'trial' : '' },
    el('tr', {},
      el('th', { scope: 'row' }, button, z.rollout ? pill(z.rollout, 'dry') : null, el('div', { class: 'limit' }, limit, el('span', { class: 'how' }, how))),
      requests.cell, refused.cell,
      el('td', { 'data-label': z.rollout ? 'Would be refused' : 'Share refused' }, el('div', { class: 'share' }, el('span', { class: 'track', 'aria-hidden': 'true' }, bar), part)),
      keys, el('td', { 'data-label': 'Store', class: 'c5' }, visible(z.store, 40))),
    under)
  const row = {
    name: z.name, body, visible: false, open: false, panel: null,
    update() {
      const z = zoneOf(row.name)
      if (!z?.totals) return
      requests.draw(z.history, z.history.values[0], state.now, rate(z.rates.all))
      refused.draw(z.history, z.history.values[1], state.now, rate(z.rates.refused + z.rates.dry))
      const [all, no] = countsOf(z.history)
      setText(part, share(no, all))
      bar.style.width = (all ? no / all * 100 : 0) + '%'
      setText(keys, z.inUse !== undefined ? count(z.inUse, 'slot') : z.keys === undefined ? '–' : number(z.keys))
      row.panel?.update(z)
    },
    toggle() {
      row.open = !row.open
      under.hidden = !row.open
      button.setAttribute('aria-expanded', String(row.open))
      row.panel?.end()
      row.panel = row.open ? makePanel(detail, zoneOf(row.name)) : null
      row.update()
    },
  }
  seen.observe(body)
  return row
}

// updateZones shows what an event has changed.
export function updateZones() {
  for (const row of rows.values()) if (row.visible || row.open) row.update()
  const cells = l => [visible(l.name, 48), number(l.limit), number(l.running), number(l.waiting), number(l.refused), l.trend]
  show(byId('adaptive-body'), state.adaptive.length ? el('table', { class: 'top' },
    el('thead', {}, el('tr', {}, ['Adaptive limit', 'At once', 'Running', 'Waiting', 'Refused', 'Now'].map(t => el('th', { scope: 'col' }, t)))),
    el('tbody', {}, state.adaptive.map(l => el('tr', {}, cells(l).map(c => el('td', {}, c)))))) : null)
}

function filter() {
  const text = byId('zones-filter').hidden ? '' : byId('zones-text').value.toLowerCase()
  for (const row of rows.values()) row.body.hidden = !row.open && !row.name.toLowerCase().includes(text)
}
byId('zones-text').addEventListener('input', filter)

const most = 8 // keys that are listed

// makePanel shows more about a zone.
function makePanel(at, z) {
  const plot = el('div', { class: 'plot' }), outcomes = el('dl', { class: 'outcomes' }), near = el('div', { class: 'near' }), top = el('div'), costs = el('dl', { class: 'outcomes costs' })
  const facts = [['Limit', z.limit], ['Store', visible(z.store)], ['Key', z.key_form ? visible(z.key_form) : 'none: one limit for all requests'], ['If the store does not answer', z.on_store_error]]
  show(at, el('div', { class: 'panel' },
    el('div', { class: 'wide' }, el('h3', {}, 'Requests and refusals per second'), plot, el('p', { class: 'note' }, 'Up to 15 minutes, also from before this page was opened.')),
    el('div', {}, el('h3', {}, 'Outcomes'), outcomes),
    z.costs ? el('div', {}, el('h3', {}, 'What responses say they cost'), costs) : null,
    el('div', {}, el('h3', {}, 'How much of their limit clients have left'), near),
    el('div', {}, titled('Most frequent keys', 'top', [], [z.name]), top),
    el('div', {}, titled('Definition', 'zones', [], [z.name]), el('dl', { class: 'stacked' }, facts.map(([k, v]) => [el('dt', {}, k), el('dd', {}, v)])))))
  const drawing = chart(plot, [{ label: 'requests/s' }, { label: z.rollout ? 'would be refused/s' : 'refused/s', refused: true }], 'Requests per second in zone ' + plain(z.name))
  let age = 0
  const ask = async () => {
    try {
      const answer = await call('GET', zonePath(z, '/top') + '?n=' + most)
      drawTop(top, answer.keys, z)
    } catch (e) {
      show(top, el('p', { class: 'error' }, plain(e.message, 300)))
    }
  }
  ask()
  return {
    update(z) {
      drawing.draw(z.history)
      show(outcomes, state.start.outcomes.flatMap((name, i) => z.totals[i] ? [el('dt', {}, name.replaceAll('_', ' ')), el('dd', {}, number(z.totals[i]))] : []))
      if (!outcomes.children.length) show(outcomes, el('dd', {}, 'No requests yet.'))
      if (z.costs) drawCosts(costs, z)
      drawNear(near, z)
      if (++age % 10 === 0) ask()
    },
    end() { drawing.end() },
  }
}

// drawTop lists keys with the most requests.
function drawTop(at, keys, z) {
  show(at, keys.length ? el('table', { class: 'top' }, el('thead', {}, el('tr', {}, ['Key', 'Requests', 'Refused'].map(t => el('th', { scope: 'col' }, t)))),
    el('tbody', {}, keys.map(k => {
      const fill = el('span', { class: 'fill' })
      fill.style.width = k.requests / keys[0].requests * 100 + '%'
      return el('tr', {}, el('td', {}, showKey(k, z), el('span', { class: 'track', 'aria-hidden': 'true' }, fill)), el('td', {}, number(k.requests)), el('td', {}, number(k.refused)))
    }))) : el('p', { class: 'empty' }, 'No requests in the last few minutes.'))
}

// drawCosts says what happened to the costs that responses should name.
function drawCosts(at, z) {
  const results = Object.entries(z.costs).filter(([, n]) => n)
  show(at, results.map(([name, n]) => [el('dt', {}, name.replaceAll('_', ' ')), el('dd', {}, number(n))]),
    results.length ? [el('dt', {}, 'total cost'), el('dd', {}, number(z.cost_sum ?? 0))] : el('dd', {}, 'No responses yet.'))
}

// drawNear draws how much clients have left, from a sample of the last minute.
function drawNear(at, z) {
  if (!z.samples.length) {
    show(at, el('p', { class: 'empty' }, 'No decisions in the last minute.'))
    return
  }
  const bins = [['none', 0], ['up to 25 %', 0], ['25 to 50 %', 0], ['50 to 75 %', 0], ['above 75 %', 0]]
  for (const s of z.samples) bins[s.left <= 0 ? 0 : Math.min(4, Math.max(1, Math.ceil(s.left * 4)))][1]++
  show(at, el('table', { class: 'bins' }, el('tbody', {}, bins.map(([name, n]) => {
    const fill = el('span', { class: 'fill' })
    fill.style.width = n / z.samples.length * 100 + '%'
    return el('tr', {}, el('th', { scope: 'row' }, name), el('td', {}, el('span', { class: 'track', 'aria-hidden': 'true' }, fill)), el('td', {}, share(n, z.samples.length)))
  }))), el('p', { class: 'note' }, `A sample of ${count(z.samples.length, 'decision')} of the last minute.`))
}
