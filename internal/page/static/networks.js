// The networks, or the values of the option group, with the most requests. Instances count them while somebody asks, so they
// are asked for only if they are wanted.

import { buttons } from './actions.js'
import { call } from './api.js'
import { offer } from './commands.js'
import { byId, el, menu, setText, show } from './dom.js'
import { wholeFleet } from './fleet.js'
import { nameKey, showKey } from './key.js'
import { state, zoneNamed } from './state.js'
import { number, plain, share, time, visible } from './text.js'

const every = 5 // events between two questions
const most = 12 // networks or groups of a zone

const body = byId('networks-body'), button = byId('networks-on'), by = byId('networks-by')

// kinds are what is counted, by the route that tells it.
const kinds = {
  networks: {
    title: 'Networks', column: 'Network', none: 'No zone has an address in its key.', name: n => el('code', { class: 'key' }, n.network),
    can: z => z.networks, keyOf: n => ({ key: n.network, network: n.network }),
  },
  groups: {
    title: 'Groups', column: 'Group', none: 'No zone has the option group.',
    name: n => n.group === '' ? el('span', { class: 'none' }, 'no value') : showKey(kinds.groups.keyOf(n)),
    can: (z, n) => z.networks && z.groups && n.group !== '',
    keyOf: n => ({ key: n.group, key_base64: n.group_base64, key_truncated: n.group_truncated, group: { value: n.group, value_base64: n.group_base64 } }),
  },
}

let on = false, turn = 0, asking = false
let kind = 'networks'

button.addEventListener('click', () => {
  on = !on
  button.setAttribute('aria-pressed', String(on))
  head()
  turn = 0
  if (on) load()
})
by.addEventListener('change', () => choose(by.value))

function choose(name) {
  kind = by.value = name
  turn = 0
  show(body, el('p', { class: 'empty' }, 'Counted while this page asks for them, and some minutes longer.'))
  head()
  if (on) load()
}

function head() {
  const { title } = kinds[kind]
  setText(byId('networks-title'), title)
  setText(button, on ? 'Stop' : 'Count ' + title.toLowerCase())
  offer('networks', 'top', ['--' + kind])
}

// startNetworks offers groups if a zone has some, after a start.
export function startNetworks() {
  const has = state.zones.some(z => z.groups)
  byId('networks-filter').hidden = !has
  if (!has && kind === 'groups') choose('networks')
  else head()
}

// updateNetworks asks again now and then.
export function updateNetworks() {
  if (on && !document.hidden && ++turn % every === 0) load()
}

// used reports whether somebody is about to press a button, which must stay.
const used = () => body.matches(':focus-within, :has(details[open], .actions:hover, :active)')

async function load() {
  if (asking || used()) return
  asking = true
  const asked = kind
  try {
    const answer = await call('GET', wholeFleet() ? asked + '?fleet=1' : asked)
    if (asked === kind && !used()) draw(answer[asked] ?? answer.instances?.[0].answer ?? answer)
  } catch (e) {
    if (asked === kind) show(body, el('p', { class: 'error' }, plain(e.message, 300)))
  }
  asking = false
  if (asked !== kind && on) load()
}

function draw(answers) {
  const counted = answers.filter(a => a[kind].length), { title, column, none } = kinds[kind]
  if (!answers.length) return show(body, el('p', { class: 'empty' }, state.zones.length ? none : 'There are no zones.'))
  if (!counted.length) return show(body, el('p', { class: 'empty' }, `No requests since counting began. ${title} appear here as soon as some come.`))
  const columns = [column, 'Requests', 'Refused', 'Keys', 'Ten minutes before', 'Actions']
  show(body, counted.map(a => el('div', { class: 'of-zone' },
    el('h3', {}, 'Zone ', visible(a.zone, 48), el('span', { class: 'how' }, a.by ? ['by ', visible(a.by, 60), ', '] : null, `${number(a.requests)} requests since ${time(Date.parse(a.since))}`)),
    el('table', { class: 'networks stack' }, el('thead', {}, el('tr', {}, columns.map(t => el('th', { scope: 'col' }, t)))),
      el('tbody', {}, a[kind].slice(0, most).map(n => row(a, n)))),
    a[kind].length > most ? el('p', { class: 'note' }, `The first ${number(most)} of ${number(a[kind].length)}.`) : null,
    a.unlisted ? el('p', { class: 'note' }, `What is not listed may have up to ${number(a.unlisted)} requests.`) : null)))
}

function row(a, n) {
  const fill = el('span', { class: 'fill' }), { name } = kinds[kind]
  fill.style.width = a.requests ? n.requests / a.requests * 100 + '%' : '0'
  return el('tr', {},
    el('th', { scope: 'row' }, name(n)),
    el('td', { 'data-label': 'Requests' }, el('div', { class: 'share' }, el('span', { class: 'track', 'aria-hidden': 'true' }, fill), el('span', { class: 'value' }, `${number(n.requests)} (${share(n.requests, a.requests)})`))),
    el('td', { 'data-label': 'Refused' }, number(n.refused)),
    el('td', { 'data-label': 'Keys' }, 'about ' + number(n.keys) + (n.keys_most ? ' to ' + number(n.keys_most) : '')),
    el('td', { 'data-label': 'Ten minutes before' }, n.before === undefined ? 'not known' : number(n.before)),
    el('td', { 'data-label': 'Actions' }, actions(a, n)))
}

// actions are what can be done to a network or a group, if its zone allows overrides of them.
function actions(a, n) {
  const z = zoneNamed(a.zone), { can, keyOf } = kinds[kind], k = keyOf(n)
  return z && can(z, n) ? el('div', { class: 'actions' }, buttons(['ban'], z, k), menu(`More actions for ${nameKey(k, z)} in zone ${plain(z.name, 40)}`, buttons(['raise', 'exempt', 'unban'], z, k))) : '–'
}
