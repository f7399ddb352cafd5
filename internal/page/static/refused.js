// The clients that are refused now, and what can be done about it.

import { buttons } from './actions.js'
import { byId, el, pill, setText, show } from './dom.js'
import { idOf, showKey } from './key.js'
import { learn } from './rulings.js'
import { state } from './state.js'
import { overrideText, whyOf } from './why.js'
import { count, duration, number, time, visible } from './text.js'

export const nowSpan = 10e3 // milliseconds after its last refusal in which a key counts as refused now
const most = 20, mostDry = 8 // rows

let order = '' // of the rows that are shown
let body = null, trials = null // the rows of limits that refuse, and those of dry runs
const rows = new Map()

const isReal = r => r.count > 0

// clients returns how many clients are among keys, which several zones may have.
const clients = list => new Set(list.map(r => idOf(r.key))).size

// refusedNow returns how many clients are refused now, and how many more would be if dry runs were enforced.
function refusedNow(all) {
  const now = all.filter(r => r.isNow && isReal(r)), ids = new Set(now.map(r => idOf(r.key)))
  return [ids.size, clients(all.filter(r => r.isNow && !isReal(r) && !ids.has(idOf(r.key))))]
}

// refusing returns the keys that were refused lately: those of now first, and dry runs last.
export function refusing() {
  const all = state.zones.flatMap(z => [...z.refusing.values()])
  for (const r of all) r.isNow = !r.done && r.seen > state.now - nowSpan
  return all.sort((a, b) => isReal(b) - isReal(a) || b.isNow - a.isNow || (b.count + b.dry) - (a.count + a.dry))
}

const rowID = r => r.zone.name + '\0' + idOf(r.key) + (r.zone.rollout ?? '')

// drawRefused has the rows made again, after a start: their buttons depend on the config.
export function drawRefused() {
  order = ''
  rows.clear()
  body?.replaceChildren()
  trials?.replaceChildren()
}

// updateRefused shows the keys.
export function updateRefused(all) {
  const real = all.filter(isReal), list = steady([...real.slice(0, most), ...all.slice(real.length).slice(0, mostDry)])
  const [now, more] = refusedNow(all), tried = list.filter(r => !isReal(r))
  setText(byId('refused-note'), real.length ? `${now ? count(now, 'client') : 'nobody'} now, ${number(clients(real))} in the last few minutes` : '')
  const ids = JSON.stringify(list.map(r => [rowID(r), isReal(r)]))
  if (ids !== order) {
    order = ids
    const before = new Map(rows)
    rows.clear()
    if (!list.length) {
      show(byId('refused-body'), el('div', { class: 'empty' }, el('p', {}, state.zones.length
        ? 'Nobody was refused in the last few minutes. Refused clients appear here, with buttons to let them through.'
        : 'There are no zones, so nobody is refused.')))
    } else {
      if (!body?.isConnected) {
        const columns = ['Key', 'Refused', 'Wait', 'Last refused', 'Last request', 'Actions']
        body = el('tbody')
        trials = el('tbody', { class: 'trial' })
        show(byId('refused-body'), el('table', { class: 'refused stack' }, el('thead', {}, el('tr', {}, columns.map(t => el('th', { scope: 'col' }, t)))), body, trials))
      }
      for (const r of list) rows.set(rowID(r), before.get(rowID(r)) ?? makeRow(r))
      const rowOf = r => rows.get(rowID(r)).row
      place(body, list.filter(isReal).map(rowOf))
      place(trials, tried.length ? [heading, ...tried.map(rowOf)] : [])
    }
  }
  setText(heading.firstChild, more ? `${count(more, 'more client')} would be refused if dry runs were enforced` : 'Dry runs, which refuse nobody')
  for (const group of [list.filter(isReal), tried]) {
    const highest = Math.max(1, ...group.map(r => r.count + r.dry))
    for (const r of group) {
      learn(r)
      rows.get(rowID(r))?.update(r, highest)
    }
  }
}

// steady keeps the order while somebody is about to press a button, which must not move away: then keys
// that are new come last.
function steady(list) {
  const at = byId('refused-body')
  if (!at.matches(':has(.actions:hover)') && !at.contains(document.activeElement)) return list
  const known = new Map([...rows.keys()].map((id, i) => [id, i]))
  const kept = state.zones.flatMap(z => [...z.refusing.values()]).filter(r => known.has(rowID(r)))
  kept.sort((a, b) => known.get(rowID(a)) - known.get(rowID(b)))
  return [...kept, ...list.filter(r => !known.has(rowID(r)))]
}

const heading = el('tr', { class: 'heading' }, el('th', { scope: 'rowgroup', colspan: 6 }))

// place puts rows into a part of the table in this order, and moves only those that are elsewhere: a row that is
// moved loses the focus.
function place(body, list) {
  for (const row of [...body.children]) if (!list.includes(row)) row.remove()
  list.forEach((row, i) => { if (body.children[i] !== row) body.insertBefore(row, body.children[i] ?? null) })
}

// waitOf says how long a key is refused.
function waitOf(r) {
  const ban = r.last?.outcome === 'banned', until = r.done ? 0 : !ban ? r.wait : r.ruling?.ban ? r.ruling.banEnds : 0
  if (until === Infinity) return ban ? 'until unbanned' : 'forever'
  if (until > state.now) return duration((until - state.now) / 1000) + (ban ? ' (ban)' : '')
  if (!r.isNow) return until ? 'over' : '–'
  // It is refused again and again, and the stream has a sample: the last wait that a client was told holds about.
  if (r.last?.outcome === 'rejected') return 'until the config changes'
  return r.last?.decision?.retry_after ? 'about ' + duration(r.last.decision.retry_after) : 'not known yet'
}

function makeRow(r) {
  const n = el('span', { class: 'value' }), fill = el('span', { class: 'fill' }), wait = el('td', { 'data-label': 'Wait' }), seen = el('td', { 'data-label': 'Last refused' })
  const last = el('td', { 'data-label': 'Last request', class: 'request' }), mark = el('span'), rule = el('span'), done = el('span'), acts = el('td', { 'data-label': 'Actions' })
  let offered = null, shown, ruled
  fill.style.width = '0'
  return {
    row: el('tr', {},
      el('th', { scope: 'row' }, showKey(r.key, r.zone), el('div', { class: 'under' }, 'zone ', visible(r.zone.name, 40), ' ', mark, ' ', rule, done)),
      el('td', { 'data-label': 'Refused' }, el('div', { class: 'share' }, el('span', { class: 'track', 'aria-hidden': 'true' }, fill), n)), wait, seen, last, acts),
    update(r, highest) {
      this.row.classList.toggle('past', !r.isNow)
      const total = r.count + r.dry
      setText(n, number(total) + (r.requests > total ? ' of ' + number(r.requests) : ''))
      fill.style.width = total / highest * 100 + '%'
      const outcome = r.last?.outcome, isBanned = outcome === 'banned'
      setText(wait, waitOf(r))
      const ago = (state.now - r.seen) / 1000
      setText(seen, !r.seen ? 'minutes ago' : ago < 2 ? 'now' : ago < 60 ? duration(Math.round(ago)) + ' ago' : time(r.seen))
      setText(done, r.done ? `${r.done.mark} ${time(r.done.at)}` : '')
      done.className = r.done ? 'pill good' : ''
      const override = r.ruling?.override
      if (ruled !== override) {
        ruled = override
        show(rule, override ? pill('override ' + overrideText(override), 'odd') : '')
      }
      if (shown !== r.last) {
        shown = r.last
        show(last, r.last ? [el('div', {}, el('code', {}, visible(r.last.method, 12), ' ', visible(r.last.path, 48))), el('div', { class: 'under' }, r.last.user_agent ? visible(r.last.user_agent, 44) : 'no user agent')] : '–')
        show(mark, r.dry && !r.count ? pill('dry run', 'dry') : outcome && outcome !== 'limited' ? pill(outcome.replaceAll('_', ' '), 'refused') : '')
      }
      const can = outcome === 'rejected' ? '' : isBanned ? 'reset raise exempt unban' : 'reset raise exempt ban' // only the config can change what it rejects
      if (offered !== can) {
        offered = can
        show(acts, buttons(can.split(' ').filter(Boolean), r.zone, r.key, whyOf))
      }
    },
  }
}

// sentence says how many clients are refused now.
export function refusedSentence(all, since) {
  const [now, more] = refusedNow(all)
  const parts = []
  if (now) parts.push(`${count(now, 'client is', 'clients are')} being refused now${since ? ', since ' + time(since) : ''}.`)
  else parts.push('Nobody is being refused.')
  if (more) parts.push(`${now ? number(more) + ' more' : count(more, 'client')} would be refused if dry runs were enforced.`)
  return [parts.join(' '), now]
}
