// The networks with the most requests. Instances count them while somebody asks, so they are asked for only if they are wanted.

import { buttons } from './actions.js'
import { call } from './api.js'
import { offer } from './commands.js'
import { byId, el, menu, setText, show } from './dom.js'
import { wholeFleet } from './fleet.js'
import { nameKey } from './key.js'
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
  turn = 0
  if (on) load()
})

// startNetworks offers the command that does the same, after a start.
export function startNetworks() {
  offer('networks', 'top', ['--networks'])
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
  try {
    const answer = await call('GET', wholeFleet() ? 'networks?fleet=1' : 'networks')
    if (!used()) draw(answer.networks ?? answer.instances?.[0].answer ?? answer)
  } catch (e) {
    show(body, el('p', { class: 'error' }, plain(e.message, 300)))
  }
  asking = false
}

function draw(answers) {
  const counted = answers.filter(a => a.networks.length)
  if (!answers.length) return show(body, el('p', { class: 'empty' }, state.zones.length ? 'No zone has an address in its key.' : 'There are no zones.'))
  if (!counted.length) return show(body, el('p', { class: 'empty' }, 'No requests since counting began. Networks appear here as soon as some come.'))
  const columns = ['Network', 'Requests', 'Refused', 'Keys', 'Ten minutes before', 'Actions']
  show(body, counted.map(a => el('div', { class: 'of-zone' },
    el('h3', {}, 'Zone ', visible(a.zone, 48), el('span', { class: 'how' }, `${number(a.requests)} requests since ${time(Date.parse(a.since))}`)),
    el('table', { class: 'networks stack' }, el('thead', {}, el('tr', {}, columns.map(t => el('th', { scope: 'col' }, t)))),
      el('tbody', {}, a.networks.slice(0, most).map(n => row(a, n)))),
    a.networks.length > most ? el('p', { class: 'note' }, `The first ${number(most)} of ${number(a.networks.length)}.`) : null,
    a.unlisted ? el('p', { class: 'note' }, `What is not listed may have up to ${number(a.unlisted)} requests.`) : null)))
}

function row(a, n) {
  const fill = el('span', { class: 'fill' })
  fill.style.width = a.requests ? n.requests / a.requests * 100 + '%' : '0'
  return el('tr', {},
    el('th', { scope: 'row' }, el('code', { class: 'key' }, n.network)),
    el('td', { 'data-label': 'Requests' }, el('div', { class: 'share' }, el('span', { class: 'track', 'aria-hidden': 'true' }, fill), el('span', { class: 'value' }, `${number(n.requests)} (${share(n.requests, a.requests)})`))),
    el('td', { 'data-label': 'Refused' }, number(n.refused)),
    el('td', { 'data-label': 'Keys' }, 'about ' + number(n.keys) + (n.keys_most ? ' to ' + number(n.keys_most) : '')),
    el('td', { 'data-label': 'Ten minutes before' }, n.before === undefined ? 'not known' : number(n.before)),
    el('td', { 'data-label': 'Actions' }, actions(a, n)))
}

// actions are what can be done to a network, if its zone allows overrides of them.
function actions(a, n) {
  const z = zoneNamed(a.zone), k = { key: n.network, network: n.network }
  return z?.networks ? el('div', { class: 'actions' }, buttons(['ban'], z, k), menu(`More actions for ${nameKey(k, z)} in zone ${plain(z.name, 40)}`, buttons(['raise', 'exempt', 'unban'], z, k))) : '–'
}
