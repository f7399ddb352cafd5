// Bans and overrides in force. A store has to look through its keys for them, so they are asked for when
// somebody looks, and after something was done, and not each second.

import { acts, onDone } from './actions.js'
import { call } from './api.js'
import { byId, cell, el, empty, note, pill, problem, show, table } from './dom.js'
import { showKey } from './key.js'
import { state } from './state.js'
import { zonesNamed } from './stores.js'
import { count, plain, time, visible } from './text.js'

const most = 500 // keys of a list
const body = byId('rules-body')

let asking = false, wanted = false

// load asks for the lists of all zones that may have one.
async function load() {
  wanted = asking
  if (asking) return
  asking = true
  const able = state.zones.filter(z => z.overrides || z.bans), rows = [], failed = new Map() // the zones of each error
  let more = false
  if (!body.children.length) show(body, empty('Asking the store …'))
  for (const z of able) {
    try {
      const [list] = await call('GET', `overrides?n=${most}&zone=${encodeURIComponent(z.name)}`)
      rows.push(...list.keys.map(k => ({ z, k })))
      more ||= list.more
    } catch (e) {
      failed.set(e.message, [...failed.get(e.message) ?? [], z.name])
    }
  }
  asking = false
  const errors = [...failed].map(([error, names]) => problem(zonesNamed(names), ': ', plain(error, 300)))
  show(body, errors, rows.length ? listed(rows, more) : empty(nothing(able, errors)))
  if (wanted) load()
}

function nothing(able, errors) {
  if (!state.zones.length) return 'There are no zones.'
  if (!able.length) {
    return 'No zone allows them: add the option overrides to a zone, and its keys can be banned, exempted, or given limits of their own.'
  }
  if (errors.length) return 'Unknown: the store keeps bans and overrides. Those of single keys do not apply while it does not answer.'
  return 'None. To ban a key, or to give it a limit of its own, look it up under Why?.'
}

const listed = (rows, more) => [
  table('rules stack', ['Key', 'Rule', 'Until', 'Note', 'Actions'], el('tbody', {}, rows.map(row))),
  more ? note('There are more: caddy rate-limit bans and caddy rate-limit overrides list them all.') : null,
  note(`${count(rows.length, 'key')}, as of ${time(Date.now())}.`),
]

function row({ z, k }) {
  const banned = k.kind === 'banned', by = k.by === 'refusals' ? 'by the zone' : 'by an operator',
    set = k.since && ['set ', time(k.since), k.set_by ? [' by ', visible(k.set_by, 40)] : null]
  return el('tr', {},
    el('th', { scope: 'row' }, showKey(k, z), el('div', { class: 'under' }, 'zone ', visible(z.name, 40))),
    cell('Rule', k.kind === 'limit' ? k.limit : pill(banned ? 'banned ' + by : 'exempt', banned ? 'banned' : 'good'),
      k.dry_run ? [' ', pill('dry run', 'dry')] : null),
    cell('Until', k.until ? time(k.until) : banned ? 'it is unbanned' : 'it is cleared'),
    cell('Note', k.note ? visible(k.note, 120) : '–', set ? el('div', { class: 'under' }, set) : null),
    cell('Actions', acts([banned ? 'unban' : 'clear'], z, k)))
}

byId('rules-load').addEventListener('click', load)
onDone(load)

// They are asked for when somebody comes to them, once for each config.
let onScreen = false, fresh = false
function loadOnce() {
  if (!onScreen || fresh || !state.start) return
  fresh = true
  load()
}
new IntersectionObserver(entries => {
  onScreen = entries.at(-1).isIntersecting
  loadOnce()
}, { rootMargin: '600px' }).observe(byId('rules'))

// startRules has the lists asked for again, after a start.
export function startRules() {
  fresh = false
  loadOnce()
}
