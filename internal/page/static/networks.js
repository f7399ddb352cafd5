// The networks with the most requests. Instances count them while somebody asks, so they are asked for only if
// they are wanted.

import { acts } from './actions.js'
import { call } from './api.js'
import { bar, byId, cell, el, empty, note, problem, setText, show, table } from './dom.js'
import { nameKey } from './key.js'
import { menu } from './menu.js'
import { state, zoneNamed } from './state.js'
import { number, plain, share, time, visible } from './text.js'

const every = 5 // events between two questions
const most = 12 // networks of a zone

const body = byId('networks-body'), button = byId('networks-on')

let on = false, turn = 0, asking = false

button.addEventListener('click', () => {
  on = !on
  button.setAttribute('aria-pressed', String(on))
  setText(button, on ? 'Stop' : 'Count networks')
  if (on) load()
})

// updateNetworks asks again now and then.
export function updateNetworks() {
  if (on && ++turn % every === 0) load()
}

// used reports whether somebody is about to press a button, which must stay.
const used = () => body.matches(':has(details[open], .actions:hover, :focus, :active)')

async function load() {
  if (asking || used()) return
  asking = true
  try {
    const answer = await call('GET', byId('fleet-on').checked ? 'networks?fleet=1' : 'networks')
    if (!used()) show(body, draw(answer.networks ?? answer.instances?.[0].answer ?? answer))
  } catch (e) {
    show(body, problem(plain(e.message, 300)))
  }
  asking = false
}

function draw(answers) {
  if (!answers.length) return empty(state.zones.length ? 'No zone has an address in its key.' : 'There are no zones.')
  const counted = answers.filter(a => a.networks.length)
  return counted.length ? counted.map(ofZone)
    : empty('No requests since counting began. Networks appear here as soon as some come.')
}

const columns = ['Network', 'Requests', 'Refused', 'Keys', 'Ten minutes before', 'Actions']

const ofZone = a => el('div', { key: a.zone, class: 'of-zone' },
  el('h3', {}, 'Zone ', visible(a.zone, 48),
    el('span', { class: 'how' }, `${number(a.requests)} requests since ${time(a.since)}`)),
  table('networks stack', columns, el('tbody', {}, a.networks.slice(0, most).map(n => row(a, n)))),
  a.networks.length > most ? note(`The first ${number(most)} of ${number(a.networks.length)}.`) : null,
  a.unlisted ? note(`What is not listed may have up to ${number(a.unlisted)} requests.`) : null)

const row = (a, n) => el('tr', { key: n.network },
  el('th', { scope: 'row' }, el('code', { class: 'key' }, n.network)),
  cell('Requests', el('div', { class: 'share' }, bar(n.requests, a.requests),
    el('span', { class: 'value' }, `${number(n.requests)} (${share(n.requests, a.requests)})`))),
  cell('Refused', number(n.refused)),
    cell('Keys', 'about ' + number(n.keys) + (n.keys_most ? ' to ' + number(n.keys_most) : '')),
  cell('Ten minutes before', n.before === undefined ? 'not known' : number(n.before)), cell('Actions', actions(a, n)))

// actions are what can be done to a network, if its zone allows overrides of them: its key is an address alone.
function actions(a, n) {
  const z = zoneNamed(a.zone), k = { key: n.network, network: n.network }
  if (!z?.overrides || z.parts.length !== 1) return '–'
  return el('div', { class: 'actions' }, acts(['ban'], z, k),
    menu(`More actions for ${nameKey(k, z)} in zone ${plain(z.name, 40)}`, acts(['raise', 'exempt', 'unban'], z, k)))
}
