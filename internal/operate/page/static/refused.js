// The clients that are refused now, one row for each with its zones, and what can be done about it.

import { act } from './actions.js'
import { bar, byId, cell, el, empty, pill, setText, show, table } from './dom.js'
import { idOf, isNone, nameKey, outcomePill, showKey } from './key.js'
import { menu } from './menu.js'
import { state } from './state.js'
import { count, duration, number, plain, time, visible } from './text.js'
import { whyButton } from './why.js'

const nowSpan = 10e3 // milliseconds after its last refusal in which a key counts as refused now
const few = 20, fewDry = 8, most = 100 // rows
const chips = 4 // zones that a row names

let everyone = false // more rows than a few were asked for
let shown = [] // the clients in the table
let since = 0 // when the first of the clients that are refused now was refused; 0 if the page has not seen that
let quiet = 0 // since when the page has seen that nobody is refused

const isReal = r => r.count > 0
const total = r => r.count + r.dry
const byUrgency = (a, b) => isReal(b) - isReal(a) || b.isNow - a.isNow || total(b) - total(a)

// refusing returns the clients that were refused lately, each with its keys in all zones: those of now first, and dry
// runs last.
export function refusing() {
  const entries = state.zones.flatMap(z => [...z.refusing.values()])
  for (const r of entries) r.isNow = !r.done && r.seen > state.now - nowSpan
  // Without a key, each zone is another client.
  const clients = Map.groupBy(entries, r => idOf(r.key) + (isNone(r.key) ? '\0' + r.zone.name : ''))
  const sum = (keys, of) => keys.reduce((n, r) => n + of(r), 0)
  return [...clients].map(([id, keys]) => ({
    id, keys: keys.sort(byUrgency), count: sum(keys, r => r.count), dry: sum(keys, r => r.dry),
    isNow: keys.some(r => r.isNow), seen: Math.max(...keys.map(r => r.seen)),
  })).sort(byUrgency)
}

// refusedNow returns how many clients are refused now, and how many more would be if dry runs were enforced.
function refusedNow(all) {
  const now = all.filter(c => c.keys.some(r => r.isNow && isReal(r))).length
  return [now, all.filter(c => c.isNow).length - now]
}

// forget has the page see again since when somebody is refused: it may have missed something.
export const forget = () => { since = quiet = 0 }

// noteSince notes since when somebody is refused: the page knows that if it has seen before that nobody is.
function noteSince(somebody) {
  if (!somebody) {
    since = 0
    quiet ||= state.now
  } else if (quiet) {
    since = state.now - quiet > nowSpan ? state.now : 0
    quiet = 0
  }
}

// refusedSentence says how many clients are refused now, and how many these are.
export function refusedSentence(all) {
  const [now, more] = refusedNow(all)
  noteSince(now > 0)
  const are = now ? `${count(now, 'client is', 'clients are')} being refused now${since ? ', since ' + time(since) : ''}.` : 'Nobody is being refused.'
  const would = more && ` ${now ? number(more) + ' more' : count(more, 'client')} would be refused if dry runs were enforced.`
  return [are + (would || ''), now]
}

// drawRefused shows the clients.
export function drawRefused(all) {
  const real = all.filter(isReal), dry = all.slice(real.length), [now, more] = refusedNow(all)
  setText(byId('refused-note'),
    real.length ? `${now ? count(now, 'client') : 'nobody'} now, ${number(real.length)} in the last few minutes` : '')
  shown = steady([...real.slice(0, everyone ? most : few), ...dry.slice(0, everyone ? most : fewDry)], all)
  const can = Math.min(real.length, most) + Math.min(dry.length, most)
  byId('refused-all').hidden = !everyone && can <= shown.length
  setText(byId('refused-all'), everyone ? 'Show fewer'
    : `Show ${can < all.length ? 'the first' : 'all'} ${number(can)}`)
  if (!shown.length) return show(byId('refused-body'), empty(state.zones.length
    ? 'Nobody was refused in the last few minutes. Refused clients appear here, with buttons to let them through.'
    : 'There are no zones, so nobody is refused.'))
  const heading = more ? `${count(more, 'more client')} would be refused if dry runs were enforced`
    : 'Dry runs, which refuse nobody'
  const tried = shown.filter(c => !isReal(c)), highest = Math.max(1, ...shown.map(total)) // one scale for all bars
  show(byId('refused-body'), table('refused stack',
    ['Client', 'Refused', 'Wait', 'Last refused', 'Last request', 'Actions'],
    el('tbody', {}, shown.filter(isReal).map(c => row(c, highest))),
    el('tbody', { class: 'trial' },
      tried.length ? el('tr', { key: 'heading', class: 'heading' },
      el('th', { scope: 'rowgroup', colspan: 6 }, heading)) : null,
      tried.map(c => row(c, highest)))))
}

byId('refused-all').addEventListener('click', () => {
  everyone = !everyone
  drawRefused(refusing())
})

// steady keeps the order while somebody is about to press a button, which must not move away: then clients
// that are new come last. What is used stays, although its client is forgotten.
function steady(list, all) {
  const at = byId('refused-body')
  if (!at.matches(':has(.actions:hover, .actions :active, :focus, details[open])')) return list
  const used = new Set([...at.querySelectorAll('tr:is(:hover, :focus-within, :has(details[open]))')].map(r => r.key))
  const now = new Map(all.map(c => [c.id, c])), before = new Set(shown.map(c => c.id))
  const kept = shown.filter(c => now.has(c.id) || used.has(c.id)).map(c => now.get(c.id) ?? c)
  return [...kept, ...list.filter(c => !before.has(c.id)).slice(0, Math.max(0, most - kept.length))]
}

// wait says how long a key is refused.
function wait(r) {
  if (r.last?.outcome === 'banned' && !r.done) return 'until the ban ends'
  const until = r.done ? 0 : r.wait
  if (until === Infinity) return 'forever'
  if (until > state.now) return duration((until - state.now) / 1000)
  if (!r.isNow) return until ? 'over' : '–'
  // It is refused again and again, and the stream has a sample: the last wait that a client was told holds about.
  if (r.last?.outcome === 'rejected') return 'until the config changes'
  return r.last?.decision?.retry_after ? 'about ' + duration(r.last.decision.retry_after) : 'not known yet'
}

// chip shows a zone of a client: in a word how it treats the key, and what was done about that.
function chip(r, alone) {
  const how = r.dry && !r.count ? 'dry_run' : r.last?.outcome ?? 'limited', mark = r.done?.mark
  return el('li', {}, el('span', { class: 'chip' }, el('span', { class: 'hide' }, 'zone '), visible(r.zone.name, 40),
    r.plan ? [', plan ', visible(r.plan, 24)] : null, ' ', alone ? null : [number(total(r)), ' '],
    !r.done ? outcomePill(how) : mark ? pill(`${mark} ${time(r.done.at)}`, 'good') : null))
}

function row(c, highest) {
  const first = c.keys[0], alone = c.keys.length === 1, ago = (state.now - c.seen) / 1000
  const requests = Math.max(...c.keys.map(r => r.requests)),
    newest = c.keys.map(r => r.last).filter(Boolean).sort((a, b) => Date.parse(b.time) - Date.parse(a.time))[0]
  const seen = !c.seen ? 'minutes ago' : ago < 2 ? 'now' : ago < 60 ? duration(Math.round(ago)) + ' ago' : time(c.seen)
  return el('tr', { key: c.id, class: c.isNow ? '' : 'past' },
    el('th', { scope: 'row' }, el('span', {}, showKey(first.key, first.zone)),
      el('ul', { class: 'chips', 'aria-label': 'Zones' },
      c.keys.slice(0, chips).map(r => chip(r, alone)),
        c.keys.length > chips ? el('li', {}, count(c.keys.length - chips, 'more zone')) : null)),
    cell('Refused', el('div', { class: 'share' }, bar(total(c), highest),
      el('span', { class: 'value' },
        number(total(c)) + (alone && requests > total(c) ? ' of ' + number(requests) : '')))),
    cell('Wait', wait(first)), cell('Last refused', seen),
    el('td', { 'data-label': 'Last request', class: 'request' }, newest ? [
      el('div', {}, el('code', {}, visible(newest.method, 12), ' ', visible(newest.path, 48))),
      el('div', { class: 'under' }, newest.user_agent ? visible(newest.user_agent, 44) : 'no user agent')] : '–'),
    cell('Actions', actionsOf(c)))
}

// actionsOf returns at most two buttons, and a menu with the others by zone.
function actionsOf(c) {
  const { zone: z, key: k } = c.keys[0], name = nameKey(k, z), several = c.keys.length > 1
  const mutable = c.keys.filter(r => r.last?.outcome !== 'rejected') // only the config can change what it rejects
  const choices = mutable.map(r => el('div',
    { class: 'actions', role: 'group', 'aria-label': 'Zone ' + plain(r.zone.name, 40) },
    several ? el('span', { class: 'under' }, visible(r.zone.name, 24)) : null,
    [...several ? ['reset'] : [], 'raise', 'exempt',
      r.last?.outcome === 'banned' ? 'unban' : 'ban'].map(a => act(a, [{ z: r.zone, k: r.key }]))))
  return el('div', { class: 'actions', role: 'group', 'aria-label': 'Actions for ' + name },
    whyButton(several ? null : z, k, name),
    mutable.length ? [act('reset', mutable.map(r => ({ z: r.zone, k: r.key }))),
      menu(`More actions for ${name} in ${several ? count(c.keys.length, 'zone') : 'zone ' + plain(z.name, 40)}`,
        choices)] : null)
}
