// The changes of what is limited, and their authors: a list, and marks in the curves of zones.

import { onDone } from './actions.js'
import { call } from './api.js'
import { byId, el, show } from './dom.js'
import { showKey } from './key.js'
import { state } from './state.js'
import { number, plain, time, visible } from './text.js'

const most = 100, rows = 20 // that are asked for, and that are listed
const every = 30e3 // between two questions, while somebody looks

let all = [], asking = false, wanted = false

// changesOf returns when a zone was changed, in seconds.
export const changesOf = zone => all.filter(c => c.zone === zone || c.zones?.some(z => z.zone === zone)).map(c => Date.parse(c.at) / 1000)

async function load() {
  if (asking) { wanted = true; return }
  asking = true
  try {
    const answer = await call('GET', 'changes?n=' + most)
    all = answer.changes
    draw(answer.incomplete)
  } catch (e) {
    show(byId('changes-body'), el('p', { class: 'error' }, plain(e.message, 300)))
  }
  asking = false
  if (wanted) { wanted = false; load() }
}

function draw(incomplete) {
  const trouble = incomplete ? el('p', { class: 'error' }, plain(incomplete, 300)) : null
  if (!all.length) return show(byId('changes-body'), trouble, el('p', { class: 'empty' }, 'None that is known.'))
  const last = all.slice(-rows).reverse()
  show(byId('changes-body'), trouble, el('table', { class: 'stack' },
    el('thead', {}, el('tr', {}, ['When', 'What', 'By', 'Note'].map(t => el('th', { scope: 'col' }, t)))),
    el('tbody', {}, last.map(c => el('tr', {},
      el('th', { scope: 'row' }, time(Date.parse(c.at))),
      el('td', { 'data-label': 'What' }, plain(c.action, 20), c.of ? [' ', showKey(c.of)] : null, c.what ? [': ', visible(c.what, 300)] : null, c.zone ? el('div', { class: 'under' }, 'zone ', visible(c.zone, 40)) : null),
      el('td', { 'data-label': 'By' }, visible(c.by || c.caddy, 60)),
      el('td', { 'data-label': 'Note' }, c.note ? visible(c.note, 120) : '–'))))),
  all.length > rows ? el('p', { class: 'note' }, `The last ${number(rows)}. caddy rate-limit changes lists more.`) : null)
}

onDone(load)
setInterval(() => { if (!document.hidden && state.connected) load() }, every)

// startChanges has them asked for again, after a start.
export const startChanges = load
