// Who is refused now, and what can be done about it.

import { buttons } from './actions.js'
import { byId, el, pill, setText, show } from './dom.js'
import { idOf, showKey } from './key.js'
import { state } from './state.js'
import { whyOf } from './why.js'
import { count, duration, number, time, visible } from './text.js'

export const nowSpan = 10e3 // milliseconds after its last refusal in which a key counts as refused now
const most = 20

let order = '' // of the rows that are shown
let body = null
const rows = new Map()

// refusing returns the keys that were refused lately, those of now first.
export function refusing() {
  const all = state.zones.flatMap(z => [...z.refusing.values()])
  for (const r of all) r.isNow = r.seen > state.now - nowSpan
  return all.sort((a, b) => b.isNow - a.isNow || (b.count + b.dry) - (a.count + a.dry))
}

const rowID = r => r.zone.name + '\0' + idOf(r.key) + (r.zone.rollout ?? '')

// drawRefused has the rows made anew, after a start: their buttons depend on the config.
export function drawRefused() {
  order = ''
  rows.clear()
  body?.replaceChildren()
}

// updateRefused shows the keys.
export function updateRefused(all) {
  const list = settled(all.slice(0, most)), now = all.filter(r => r.isNow).length
  setText(byId('refused-note'), list.length ? `${now ? number(now) + ' now' : 'nobody now'}, ${number(all.length)} in the last minutes` : '')
  const ids = JSON.stringify(list.map(rowID))
  if (ids !== order) {
    order = ids
    const before = new Map(rows)
    rows.clear()
    if (!list.length) {
      show(byId('refused-body'), el('div', { class: 'empty' }, el('p', {}, state.zones.length
        ? 'Nobody was refused in the last minutes. Whoever is will be here, with buttons that let them through.'
        : 'Without zones nobody is refused.')))
    } else {
      if (!body?.isConnected) {
        const columns = ['Key', 'Refused', 'Wait', 'Last seen', 'Last request', 'Actions']
        body = el('tbody')
        show(byId('refused-body'), el('table', { class: 'refused stack' }, el('thead', {}, el('tr', {}, columns.map(t => el('th', { scope: 'col' }, t)))), body))
      }
      place(list.map(r => {
        const id = rowID(r)
        rows.set(id, before.get(id) ?? makeRow(r))
        return rows.get(id).row
      }))
    }
  }
  const highest = Math.max(1, ...list.map(r => r.count + r.dry))
  for (const r of list) rows.get(rowID(r))?.update(r, highest)
}

// settled keeps the order while somebody is about to press a button, which must not move away: then keys
// that are new come last.
function settled(list) {
  const at = byId('refused-body')
  if (!at.matches(':has(.actions:hover)') && !at.contains(document.activeElement)) return list
  const known = new Map([...rows.keys()].map((id, i) => [id, i]))
  const kept = state.zones.flatMap(z => [...z.refusing.values()]).filter(r => known.has(rowID(r)))
  kept.sort((a, b) => known.get(rowID(a)) - known.get(rowID(b)))
  return [...kept, ...list.filter(r => !known.has(rowID(r)))]
}

// place puts rows into the table in this order, and moves only those that stand elsewhere: a row that is
// moved loses the focus.
function place(list) {
  for (const row of [...body.children]) if (!list.includes(row)) row.remove()
  list.forEach((row, i) => { if (body.children[i] !== row) body.insertBefore(row, body.children[i] ?? null) })
}

function makeRow(r) {
  const n = el('span', { class: 'value' }), fill = el('span', { class: 'fill' }), wait = el('td', { 'data-label': 'Wait' }), seen = el('td', { 'data-label': 'Last seen' })
  const last = el('td', { 'data-label': 'Last request', class: 'request' }), mark = el('span'), acts = el('td', { 'data-label': 'Actions' })
  let banned = null, shown
  return {
    row: el('tr', {},
      el('th', { scope: 'row' }, showKey(r.key, r.zone), el('div', { class: 'under' }, 'zone ', visible(r.zone.name, 40), ' ', mark)),
      el('td', { 'data-label': 'Refused' }, el('div', { class: 'share' }, el('span', { class: 'track', 'aria-hidden': 'true' }, fill), n)), wait, seen, last, acts),
    update(r, highest) {
      this.row.classList.toggle('past', !r.isNow)
      const total = r.count + r.dry
      setText(n, number(total) + (r.requests > total ? ' of ' + number(r.requests) : ''))
      fill.style.width = total / highest * 100 + '%'
      const outcome = r.last?.outcome, isBanned = outcome === 'banned'
      if (r.wait === Infinity) setText(wait, 'for ever')
      else setText(wait, r.wait > state.now ? duration((r.wait - state.now) / 1000) : r.wait ? 'over' : '–')
      const ago = (state.now - r.seen) / 1000
      setText(seen, !r.seen ? 'minutes ago' : ago < 2 ? 'now' : ago < 60 ? duration(Math.round(ago)) + ' ago' : time(r.seen))
      if (shown !== r.last) {
        shown = r.last
        show(last, r.last ? [el('div', {}, el('code', {}, visible(r.last.method, 12), ' ', visible(r.last.path, 48))), el('div', { class: 'under' }, r.last.user_agent ? visible(r.last.user_agent, 44) : 'no user agent')] : '–')
        show(mark, r.dry && !r.count ? pill('dry run', 'dry') : outcome && outcome !== 'limited' ? pill(outcome.replaceAll('_', ' '), 'refused') : '')
      }
      if (banned !== isBanned) {
        banned = isBanned
        show(acts, buttons(['reset', 'raise', 'exempt', isBanned ? 'unban' : 'ban'], r.zone, r.key, whyOf))
      }
    },
  }
}

// sentence says how many clients are refused now.
export function refusedSentence(all, since) {
  const now = all.filter(r => r.isNow && r.count > 0), dry = all.filter(r => r.isNow && !r.count).length
  const parts = []
  if (now.length) parts.push(`${count(now.length, 'client is', 'clients are')} being refused now${since ? ', since ' + time(since) : ''}.`)
  else parts.push('Nobody is being refused.')
  if (dry) parts.push(`${count(dry, 'client', 'clients')} would be, without dry runs.`)
  return [parts.join(' '), now.length]
}
