// The clients that are refused now, one row for each with its zones, and what can be done about it.

import { banAgent, button } from './actions.js'
import { byId, el, menu, outcomePill, pill, place, setText, show } from './dom.js'
import { idOf, isNone, nameKey, showKey } from './key.js'
import { state } from './state.js'
import { whyOf, whyOfAll } from './why.js'
import { count, duration, number, plain, time, visible } from './text.js'

export const nowSpan = 10e3 // milliseconds after its last refusal in which a key counts as refused now
const few = 20, fewDry = 8, most = 100 // rows
const chips = 4 // zones that a row names
const step = 6 // rows that an event may add, and each frame after it until there are as many as were asked for
const others = 24 // rows beyond the screen that an event updates

let order = '' // of the rows that are shown
let body = null, trials = null // the rows of limits that refuse, and those of dry runs
let everyone = false // more rows than a few were asked for
let growing = false // the next frame adds rows
let turn = 0 // counts the updates
let config = 0 // counts the configs
const rows = new Map(), rowOf = new WeakMap() // by client, and by element

// near notes which rows are on the screen, or close to it. An event updates these, and of the others the few that have waited
// longest: all would be too much for a frame.
const near = new IntersectionObserver(entries => {
  for (const e of entries) {
    const row = rowOf.get(e.target)
    row.near = e.isIntersecting
    if (row.near && row.updated !== turn) row.update()
  }
}, { rootMargin: '50% 0px' })

const isReal = r => r.count > 0
const sumOf = (list, of) => list.reduce((n, r) => n + of(r), 0)

// refusedNow returns how many clients are refused now, and how many more would be if dry runs were enforced.
function refusedNow(all) {
  const now = all.filter(c => c.isNow && isReal(c) && c.keys.some(r => r.isNow && isReal(r)))
  return [now.length, all.filter(c => c.isNow && !now.includes(c)).length]
}

// refusing returns the clients that were refused lately, each with its keys in all zones: those of now first, and dry
// runs last.
export function refusing() {
  const clients = new Map()
  for (const z of state.zones) {
    for (const r of z.refusing.values()) {
      r.isNow = !r.done && r.seen > state.now - nowSpan
      const id = idOf(r.key) + (isNone(r.key) ? '\0' + z.name : '') // without a key, each zone is another client
      if (!clients.has(id)) clients.set(id, { id, keys: [] })
      clients.get(id).keys.push(r)
    }
  }
  const all = [...clients.values()]
  for (const c of all) {
    c.keys.sort(byUrgency)
    Object.assign(c, { count: sumOf(c.keys, r => r.count), dry: sumOf(c.keys, r => r.dry), isNow: c.keys.some(r => r.isNow), seen: Math.max(...c.keys.map(r => r.seen)) })
  }
  return all.sort(byUrgency)
}

const byUrgency = (a, b) => isReal(b) - isReal(a) || b.isNow - a.isNow || (b.count + b.dry) - (a.count + a.dry)

// drawRefused has the rows drawn again with the next event, after a start: their buttons depend on the config.
export function drawRefused() {
  order = ''
  config++
}

// bounded adds at most a step of rows that are new, the first ones. In place of the others, rows that should go stay a little longer.
function bounded(list, all) {
  const late = new Set(list.filter(c => !rows.has(c.id)).slice(step))
  if (!late.size) return list
  const wanted = new Set(list.map(c => c.id)), now = new Map(all.map(c => [c.id, c]))
  const old = [...rows].filter(([id]) => !wanted.has(id)).slice(0, late.size)
  if (old.length < late.size && !growing) {
    growing = true
    requestAnimationFrame(() => {
      growing = false
      updateRefused(refusing())
    })
  }
  return [...list.filter(c => !late.has(c)), ...old.map(([id, r]) => now.get(id) ?? r.client)]
}

// updateRefused shows the clients.
export function updateRefused(all) {
  const real = all.filter(isReal), some = everyone ? most : few
  const list = bounded(steady([...real.slice(0, some), ...all.slice(real.length).slice(0, everyone ? most : fewDry)], all), all)
  const [now, more] = refusedNow(all), tried = list.filter(c => !isReal(c))
  setText(byId('refused-note'), real.length ? `${now ? count(now, 'client') : 'nobody'} now, ${number(real.length)} in the last few minutes` : '')
  offerAll(all, list.length)
  const ids = JSON.stringify(list.map(c => [c.id, isReal(c)])), before = order
  order = ids
  if (ids !== before) make(list)
  setText(heading.firstChild, more ? `${count(more, 'more client')} would be refused if dry runs were enforced` : 'Dry runs, which refuse nobody')
  const due = []
  turn++
  for (const group of [list.filter(isReal), tried]) {
    const highest = Math.max(1, ...group.map(c => c.count + c.dry))
    for (const c of group) {
      due.push(Object.assign(rows.get(c.id), { client: c, highest }))
    }
  }
  const first = due.filter(r => r.near || !r.updated), far = due.filter(r => !r.near && r.updated).sort((a, b) => a.updated - b.updated)
  for (const r of [...first, ...far.slice(0, others)]) r.update()
  if (ids !== before) draw(list, tried) // with what is in the rows, so that the focus finds it again
}

// make makes the rows that are new.
function make(list) {
  const before = new Map(rows)
  rows.clear()
  for (const c of list) rows.set(c.id, before.get(c.id) ?? makeRow())
  for (const [id, r] of before) if (!rows.has(id)) near.unobserve(r.row)
}

function draw(list, tried) {
  if (!list.length) {
    show(byId('refused-body'), el('div', { class: 'empty' }, el('p', {}, state.zones.length
      ? 'Nobody was refused in the last few minutes. Refused clients appear here, with buttons to let them through.'
      : 'There are no zones, so nobody is refused.')))
    return
  }
  if (!body?.isConnected) {
    const columns = ['Client', 'Refused', 'Wait', 'Last refused', 'Last request', 'Actions']
    body = el('tbody')
    trials = el('tbody', { class: 'trial' })
    show(byId('refused-body'), el('table', { class: 'refused stack' }, el('thead', {}, el('tr', {}, columns.map(t => el('th', { scope: 'col' }, t)))), body, trials))
  }
  const element = c => rows.get(c.id).row
  place(body, list.filter(isReal).map(element))
  place(trials, tried.length ? [heading, ...tried.map(element)] : [])
}

// offerAll offers all clients, or as many as the page has rows for, if there are more than are shown.
function offerAll(all, shown) {
  const at = byId('refused-all'), real = all.filter(isReal).length, can = Math.min(real, most) + Math.min(all.length - real, most)
  at.hidden = !everyone && can <= shown
  setText(at, everyone ? 'Show fewer' : `Show ${can < all.length ? 'the first' : 'all'} ${number(can)}`)
}
byId('refused-all').addEventListener('click', () => {
  everyone = !everyone
  updateRefused(refusing())
})

// steady keeps the order while somebody is about to press a button, which must not move away: then clients
// that are new come last. What is used stays, although its client is forgotten.
function steady(list, all) {
  const at = byId('refused-body'), pressing = at.matches(':has(.actions:hover, .actions :active)')
  if (!pressing && !at.matches(':focus-within, :has(details[open])')) return list
  const now = new Map(all.map(c => [c.id, c])), isUsed = r => pressing || r.row.matches(':focus-within, :has(details[open])')
  const kept = [...rows].filter(([id, r]) => now.has(id) || isUsed(r)).map(([id, r]) => now.get(id) ?? r.client)
  return [...kept, ...list.filter(c => !rows.has(c.id)).slice(0, Math.max(0, most - kept.length))]
}

const heading = el('tr', { class: 'heading' }, el('th', { scope: 'rowgroup', colspan: 6 }))

// waitOf says how long a key is refused.
function waitOf(r) {
  if (r.last?.outcome === 'banned' && !r.done) return 'until the ban ends'
  const until = r.done ? 0 : r.wait
  if (until === Infinity) return 'forever'
  if (until > state.now) return duration((until - state.now) / 1000)
  if (!r.isNow) return until ? 'over' : '–'
  // It is refused again and again, and the stream has a sample: the last wait that a client was told holds about.
  if (r.last?.outcome === 'rejected') return 'until the config changes'
  return r.last?.decision?.retry_after ? 'about ' + duration(r.last.decision.retry_after) : 'not known yet'
}

// howOf says in a word how a zone treats a key, and what was done about that.
const howOf = r => r.done ? r.done.mark && `${r.done.mark} ${time(r.done.at)}` : r.dry && !r.count ? 'dry_run' : r.last?.outcome ?? 'limited'

// chip shows a zone of a client.
function chip(r, alone) {
  const how = howOf(r), n = r.count + r.dry
  return el('li', {}, el('span', { class: 'chip' }, el('span', { class: 'hide' }, 'zone '), visible(r.zone.name, 40), r.plan ? [', plan ', visible(r.plan, 24)] : null, ' ', alone ? null : [number(n), ' '], !how ? null : r.done ? pill(how, 'good') : outcomePill(how)))
}

const chipState = r => [r.zone.name, r.plan, howOf(r), Boolean(r.done), r.count + r.dry]

// actionsOf returns at most two buttons, and a menu with the others by zone.
function actionsOf(c) {
  const first = c.keys[0], { zone: z, key: k } = first, name = nameKey(k, z), several = c.keys.length > 1
  const mutable = c.keys.filter(r => r.last?.outcome !== 'rejected') // only the config can change what it rejects
  const label = several ? `Why? ${name}` : `Why? ${name} in zone ${plain(z.name, 40)}`
  const choices = mutable.map(r => el('div', { class: 'actions', role: 'group', 'aria-label': 'Zone ' + plain(r.zone.name, 40) },
    several ? el('span', { class: 'under' }, visible(r.zone.name, 24)) : null,
    [...several ? ['reset'] : [], 'raise', 'exempt', r.last?.outcome === 'banned' ? 'unban' : 'ban'].map(a => button(a, [{ z: r.zone, k: r.key }])),
    r.zone.overrides && r.last?.user_agent ? banAgent(r) : null))
  return el('div', { class: 'actions', role: 'group', 'aria-label': 'Actions for ' + name },
    k.key_truncated ? null : el('button', { type: 'button', 'aria-label': label, click: () => several ? whyOfAll(k) : whyOf(z, k) }, 'Why?'),
    mutable.length ? [button('reset', mutable.map(r => ({ z: r.zone, k: r.key }))), menu(`More actions for ${name} in ${several ? count(c.keys.length, 'zone') : 'zone ' + plain(z.name, 40)}`, choices)] : null)
}

function makeRow() {
  const n = el('span', { class: 'value' }), fill = el('span', { class: 'fill' }), wait = el('td', { 'data-label': 'Wait' }), seen = el('td', { 'data-label': 'Last refused' })
  const name = el('span'), list = el('ul', { class: 'chips', 'aria-label': 'Zones' }), last = el('td', { 'data-label': 'Last request', class: 'request' }), acts = el('td', { 'data-label': 'Actions' })
  const shown = {}
  // changed reports whether something is not as it was drawn.
  const changed = (what, now) => shown[what] !== (now = JSON.stringify(now)) && (shown[what] = now, true)
  fill.style.width = '0'
  const made = {
    near: false, updated: 0, // a row that is new is updated at once, wherever it is
    row: el('tr', {}, el('th', { scope: 'row' }, name, list), el('td', { 'data-label': 'Refused' }, el('div', { class: 'share' }, el('span', { class: 'track', 'aria-hidden': 'true' }, fill), n)), wait, seen, last, acts),
    update() {
      const { client: c, highest } = this
      this.updated = turn
      const total = c.count + c.dry, first = c.keys[0], requests = Math.max(...c.keys.map(r => r.requests)), ago = (state.now - c.seen) / 1000
      const newest = c.keys.map(r => r.last).filter(Boolean).sort((a, b) => Date.parse(b.time) - Date.parse(a.time))[0]
      this.row.classList.toggle('past', !c.isNow)
      setText(n, number(total) + (c.keys.length === 1 && requests > total ? ' of ' + number(requests) : ''))
      fill.style.width = total / highest * 100 + '%'
      setText(wait, waitOf(first))
      setText(seen, !c.seen ? 'minutes ago' : ago < 2 ? 'now' : ago < 60 ? duration(Math.round(ago)) + ' ago' : time(c.seen))
      if (changed('name', [config, first.key, first.zone.name])) show(name, showKey(first.key, first.zone))
      if (changed('chips', c.keys.map(chipState))) show(list, c.keys.slice(0, chips).map(r => chip(r, c.keys.length === 1)), c.keys.length > chips ? el('li', {}, count(c.keys.length - chips, 'more zone')) : null)
      if (changed('last', newest?.time ?? null)) {
        show(last, newest ? [el('div', {}, el('code', {}, visible(newest.method, 12), ' ', visible(newest.path, 48))), el('div', { class: 'under' }, newest.user_agent ? visible(newest.user_agent, 44) : 'no user agent')] : '–')
      }
      const can = [config, ...c.keys.map(r => [r.zone.name, r.last?.outcome === 'banned' ? 'banned' : r.last?.outcome === 'rejected' ? 'rejected' : '', Boolean(r.last?.user_agent)])]
      if (!acts.querySelector('details[open], :active') && changed('can', can)) show(acts, actionsOf(c))
    },
  }
  rowOf.set(made.row, made)
  near.observe(made.row)
  return made
}

// refusedSentence says how many clients are refused now.
export function refusedSentence(all, since) {
  const [now, more] = refusedNow(all)
  const parts = []
  if (now) parts.push(`${count(now, 'client is', 'clients are')} being refused now${since ? ', since ' + time(since) : ''}.`)
  else parts.push('Nobody is being refused.')
  if (more) parts.push(`${now ? number(more) + ' more' : count(more, 'client')} would be refused if dry runs were enforced.`)
  return [parts.join(' '), now]
}
