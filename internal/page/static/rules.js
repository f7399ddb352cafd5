// Bans and overrides in force. A store has to look through its keys for them, so they are asked for when
// somebody looks, and after something was done, and not each second.

import { buttons, onDone } from './actions.js'
import { call, zonePath } from './api.js'
import { byId, el, pill, show } from './dom.js'
import { showKey } from './key.js'
import { state } from './state.js'
import { count, plain, time, visible, zonesNamed } from './text.js'

const pages = 5 // of 100 keys that are asked for at once, for each zone

let asking = false, wanted = false

// load asks for the lists of all zones that may have one.
export async function load() {
  if (asking) { wanted = true; return }
  asking = true
  const rows = [], failed = new Map() // the zones of each error
  let more = false
  const able = state.zones.filter(z => z.overrides || z.bans)
  for (const z of able) {
    try {
      for (const list of [...z.overrides ? ['/overrides'] : [], ...z.bans ? ['/bans'] : []]) more = await read(z, list, rows) || more
    } catch (e) {
      failed.set(e.message, [...failed.get(e.message) ?? [], z.name])
    }
  }
  const errors = [...failed].map(([error, names]) => el('p', { class: 'error' }, zonesNamed(names), ': ', plain(error, 300)))
  asking = false
  draw(able, rows, errors, more)
  if (wanted) { wanted = false; load() }
}

async function read(z, list, rows) {
  let cursor = ''
  for (let i = 0; i < pages; i++) {
    const page = await call('GET', zonePath(z, list) + '?n=100' + (cursor && '&cursor=' + encodeURIComponent(cursor)))
    for (const k of page.keys) {
      if (list === '/bans' && k.by === 'override' && z.overrides) continue // it is in the list of overrides
      rows.push({ z, k, by: list === '/bans' && k.by === 'refusals' ? 'by the zone' : 'by an operator' })
    }
    if (!page.next) return false
    cursor = page.next
  }
  return true
}

function draw(able, rows, errors, more) {
  const body = byId('rules-body')
  if (!able.length) {
    show(body, el('p', { class: 'empty' }, state.zones.length ? 'No zone allows them: add the option overrides to a zone, and its keys can be banned, exempted, or given limits of their own.' : 'There are no zones.'))
    return
  }
  if (!rows.length && errors.length) {
    show(body, errors, el('p', { class: 'empty' }, 'Unknown: the store keeps bans and overrides. They do not hold while it does not answer.'))
    return
  }
  if (!rows.length) {
    show(body, el('p', { class: 'empty' }, 'None. To ban a key, or to give it a limit of its own, look it up under Why?.'))
    return
  }
  const at = Date.now()
  show(body, errors, el('table', { class: 'rules stack' },
    el('thead', {}, el('tr', {}, ['Key', 'Rule', 'Until', 'Note', 'Actions'].map(t => el('th', { scope: 'col' }, t)))),
    el('tbody', {}, rows.map(({ z, k, by }) => el('tr', {},
      el('th', { scope: 'row' }, showKey(k, z), el('div', { class: 'under' }, 'zone ', visible(z.name, 40))),
      el('td', { 'data-label': 'Rule' }, k.kind === 'limit' ? k.limit : pill(k.kind === 'banned' ? 'banned ' + by : 'exempt', k.kind === 'banned' ? 'banned' : 'good'), k.dry_run ? [' ', pill('dry run', 'dry')] : null),
      el('td', { 'data-label': 'Until' }, k.ends_in ? time(at + k.ends_in * 1000) : k.kind === 'banned' ? 'it is unbanned' : 'it is cleared'),
      el('td', { 'data-label': 'Note' }, k.note ? visible(k.note, 120) : '–', k.since ? el('div', { class: 'under' }, 'set ', time(Date.parse(k.since)), k.set_by ? [' by ', visible(k.set_by, 40)] : null) : null),
      el('td', { 'data-label': 'Actions' }, buttons([k.kind === 'banned' ? 'unban' : 'clear'], z, k)))))),
  more ? el('p', { class: 'note' }, `There are more: caddy rate-limit bans and caddy rate-limit overrides list them all.`) : null,
  el('p', { class: 'note' }, `${count(rows.length, 'key')}, as of ${time(at)}.`))
}

byId('rules-load').addEventListener('click', load)
onDone(load)

// They are asked for when somebody comes to them, once for each config.
let onScreen = false, fresh = false
const loadOnce = () => { if (onScreen && !fresh && state.start) { fresh = true; load() } }
new IntersectionObserver(entries => {
  onScreen = entries.at(-1).isIntersecting
  loadOnce()
}, { rootMargin: '600px' }).observe(byId('rules'))

// startRules has the lists asked for again, after a start.
export function startRules() {
  fresh = false
  loadOnce()
}
