// The networks with the most requests. Instances count them while somebody asks, so they are asked for only if they are
// wanted.

import { buttons } from './actions.js'
import { call } from './api.js'
import { byId, el, menu, setText, show } from './dom.js'
import { wholeFleet } from './fleet.js'
import { state, zoneNamed } from './state.js'
import { number, plain, share, time, visible } from './text.js'

const every = 5 // events between two questions
const most = 12 // networks of a zone

let on = false, turn = 0, asking = false

byId('networks-on').addEventListener('click', () => {
  on = !on
  byId('networks-on').setAttribute('aria-pressed', String(on))
  setText(byId('networks-on'), on ? 'Stop' : 'Count networks')
  turn = 0
  if (on) load()
})

// updateNetworks asks again now and then.
export function updateNetworks() {
  if (on && !document.hidden && ++turn % every === 0) load()
}

async function load() {
  if (asking || byId('networks-body').querySelector('details[open]') || byId('networks-body').contains(document.activeElement)) return
  asking = true
  try {
    const answer = await call('GET', wholeFleet() ? 'networks?fleet=1' : 'networks')
    draw(answer.networks ?? answer.instances?.[0].answer ?? answer)
  } catch (e) {
    show(byId('networks-body'), el('p', { class: 'error' }, plain(e.message, 300)))
  }
  asking = false
}

function draw(answers) {
  const counted = answers.filter(a => a.networks.length)
  if (!answers.length) return show(byId('networks-body'), el('p', { class: 'empty' }, state.zones.length ? 'No zone has an address in its key.' : 'There are no zones.'))
  if (!counted.length) return show(byId('networks-body'), el('p', { class: 'empty' }, 'No requests since counting began. Networks appear here as soon as some come.'))
  show(byId('networks-body'), counted.map(a => el('div', { class: 'of-zone' },
    el('h3', {}, 'Zone ', visible(a.zone, 48), el('span', { class: 'how' }, `${number(a.requests)} requests since ${time(Date.parse(a.since))}`)),
    el('table', { class: 'networks stack' }, el('thead', {}, el('tr', {}, ['Network', 'Requests', 'Refused', 'Keys', 'Ten minutes before', 'Actions'].map(t => el('th', { scope: 'col' }, t)))),
      el('tbody', {}, a.networks.slice(0, most).map(n => row(a, n)))),
    a.networks.length > most ? el('p', { class: 'note' }, `The first ${number(most)} of ${number(a.networks.length)}.`) : null)))
}

function row(a, n) {
  const fill = el('span', { class: 'fill' }), z = zoneNamed(a.zone), k = { key: n.network, network: n.network }
  fill.style.width = a.requests ? n.requests / a.requests * 100 + '%' : '0'
  return el('tr', {},
    el('th', { scope: 'row' }, el('code', { class: 'key' }, n.network)),
    el('td', { 'data-label': 'Requests' }, el('div', { class: 'share' }, el('span', { class: 'track', 'aria-hidden': 'true' }, fill), el('span', { class: 'value' }, `${number(n.requests)} (${share(n.requests, a.requests)})`))),
    el('td', { 'data-label': 'Refused' }, number(n.refused)),
    el('td', { 'data-label': 'Keys' }, 'about ' + number(n.keys) + (n.keys_most ? ' to ' + number(n.keys_most) : '')),
    el('td', { 'data-label': 'Ten minutes before' }, n.before === undefined ? 'not known' : number(n.before)),
    el('td', { 'data-label': 'Actions' }, z?.networks ? el('div', { class: 'actions' }, buttons(['ban'], z, k), menu('More actions for ' + n.network, buttons(['raise', 'exempt', 'unban'], z, k))) : '–'))
}
