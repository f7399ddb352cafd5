// Decisions as they are made: a sample of at most 20 a second.

import { byId, cell, el, empty, setText, show, table } from './dom.js'
import { outcomePill, showKey } from './key.js'
import { state, zoneNamed } from './state.js'
import { open } from './stream.js'
import { duration, number, plain, time, visible } from './text.js'
import { zoneOptions } from './why.js'

const most = 25 // rows
const outcome = byId('decisions-outcome'), zone = byId('decisions-zone'), text = byId('decisions-text'),
  pause = byId('pause')

let paused = null // the decisions that are shown while it is paused

// drawFilters offers outcomes and zones.
export function drawFilters() {
  const before = outcome.value
  show(outcome, el('option', { value: '' }, 'all'), el('option', { value: 'refused' }, 'refused'),
    state.start.outcomes.map(o => el('option', { value: o }, o.replaceAll('_', ' '))))
  outcome.value = before
  zoneOptions(zone, 'all')
}

// follow begins the stream again, for what the filters say.
export function follow() {
  Object.assign(state, { decisions: [], skipped: 0 })
  open({ outcome: outcome.value, zone: state.zones[zone.selectedIndex - 1]?.name ?? '' })
  drawDecisions()
}
outcome.addEventListener('change', follow)
zone.addEventListener('change', follow)
text.addEventListener('input', drawDecisions)
byId('decisions-form').addEventListener('submit', e => e.preventDefault())
pause.addEventListener('click', () => {
  paused = paused ? null : state.decisions
  pause.setAttribute('aria-pressed', String(Boolean(paused)))
  setText(pause, paused ? 'Resume' : 'Pause')
  drawDecisions()
})

const searched = ['zone', 'key', 'client_ip', 'method', 'host', 'path', 'user_agent', 'plan']
const matches = d => searched.some(name => d[name]?.toLowerCase().includes(text.value.toLowerCase()))
const likeness = d => JSON.stringify([d.zone, d.key, d.key_base64, d.outcome, d.method, d.host, d.path, d.reason])

// grouped puts decisions together that are alike and follow each other. The newest come first.
function grouped(list) {
  const groups = []
  for (const d of list) {
    const like = likeness(d), last = groups[0]
    if (last?.like === like) Object.assign(last, { n: last.n + 1, d })
    else groups.unshift({ like, n: 1, d, key: like + d.time })
  }
  return groups.slice(0, most)
}

function row({ d, n, key }) {
  const at = Date.parse(d.time), passed = (state.now - at) / 1000
  return el('tr', { key },
    el('td', { class: 'time' }, el('span', {}, time(at)), ' ',
      el('span', { class: 'under' }, passed < 1.5 ? 'now' : duration(Math.round(passed)) + ' ago')),
    el('td', {}, outcomePill(d.outcome), ' ', el('span', { class: 'times' }, n > 1 ? `× ${number(n)}` : '')),
    cell('Zone', visible(d.zone, 32)), cell('Key', showKey(d, zoneNamed(d.zone))),
    el('td', { 'data-label': 'Left', class: 'left' },
      d.decision ? `${number(d.decision.remaining)} of ${number(d.decision.quota)}` : d.reason ? plain(d.reason, 60)
        : '–'),
    cell('Request', el('code', {}, visible(d.method, 12), ' ', visible(d.host, 40), visible(d.path, 48))))
}

// drawDecisions shows the decisions that match.
export function drawDecisions() {
  const groups = grouped((paused ?? state.decisions).filter(matches)),
    filters = outcome.value || zone.value || text.value
  show(byId('decisions-body'), groups.length
    ? table('decisions stack', ['Time', 'Outcome', 'Zone', 'Key', 'Left', 'Request'], el('tbody', {}, groups.map(row)))
    : empty(filters ? 'No decision matches the filters yet.'
      : 'No requests yet. Send one that a zone matches, and its decision appears here.'))
  const missed = paused ? state.decisions.length - 1 - state.decisions.lastIndexOf(paused.at(-1)) : 0
  setText(byId('decisions-note'),
    paused ? `Paused. New since then: ${number(missed)}${missed === state.decisions.length && missed ? ' or more' : ''}.`
    : state.skipped ? `A sample: ${number(state.skipped)} others in the last second are not shown.` : '')
}
