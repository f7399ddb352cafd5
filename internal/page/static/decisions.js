// Decisions as they are made: a sample of at most 20 a second.

import { byId, el, outcomePill, setText, show } from './dom.js'
import { showKey } from './key.js'
import { state, zoneNamed } from './state.js'
import { open } from './stream.js'
import { duration, number, plain, time, visible } from './text.js'

const most = 25
const outcome = byId('decisions-outcome'), zone = byId('decisions-zone'), text = byId('decisions-text'), pause = byId('pause')

let paused = null // the decisions that are shown while it is paused
let missed = 0, skipped = 0
let newest = null // of the decisions that were counted
let body = null
let groups = [] // of decisions that are alike and follow each other, the newest first

// drawFilters offers outcomes and zones.
export function drawFilters() {
  const before = [outcome.value, zone.value]
  show(outcome, el('option', { value: '' }, 'all'), el('option', { value: 'refused' }, 'refused'), state.start.outcomes.map(o => el('option', { value: o }, o.replaceAll('_', ' '))))
  show(zone, el('option', { value: '' }, 'all'), state.zones.map(z => el('option', { value: z.name }, plain(z.name, 60))))
  outcome.value = before[0]
  zone.selectedIndex = Math.max(0, state.zones.findIndex(z => z.name === before[1]) + 1)
}

// follow begins the stream again, for what the filters say.
export const follow = () => {
  state.decisions = []
  skipped = 0
  open({ outcome: outcome.value, zone: state.zones[zone.selectedIndex - 1]?.name ?? '' })
  redraw()
}
outcome.addEventListener('change', follow)
zone.addEventListener('change', follow)
text.addEventListener('input', redraw)
byId('decisions-form').addEventListener('submit', e => e.preventDefault())
pause.addEventListener('click', () => {
  paused = paused ? null : [...state.decisions]
  missed = 0
  pause.setAttribute('aria-pressed', String(Boolean(paused)))
  setText(pause, paused ? 'Resume' : 'Pause')
  redraw()
})

const matches = d => {
  const wanted = text.value.toLowerCase()
  return !wanted || [d.zone, d.key, d.client_ip, d.method, d.host, d.path, d.user_agent ?? '', d.plan ?? ''].some(t => t.toLowerCase().includes(wanted))
}

const likeness = d => JSON.stringify([d.zone, d.key, d.key_base64, d.outcome, d.method, d.host, d.path, d.reason])

// makeGroup makes a row for a decision and for those like it that follow.
function makeGroup(d) {
  const ago = el('span', { class: 'under' }), clock = el('span'), times = el('span', { class: 'times' }), left = el('td', { 'data-label': 'Left', class: 'left' })
  const row = el('tr', {},
    el('td', { class: 'time' }, clock, ' ', ago),
    el('td', {}, outcomePill(d.outcome), ' ', times),
    el('td', { 'data-label': 'Zone' }, visible(d.zone, 32)),
    el('td', { 'data-label': 'Key' }, showKey(d, zoneNamed(d.zone))),
    left,
    el('td', { 'data-label': 'Request' }, el('code', {}, visible(d.method, 12), ' ', visible(d.host, 40), visible(d.path, 48))))
  const group = {
    row, like: likeness(d), n: 0, at: 0,
    add(d) {
      group.n++
      group.at = Date.parse(d.time)
      setText(clock, time(group.at))
      setText(times, group.n > 1 ? `× ${number(group.n)}` : '')
      setText(left, d.decision ? `${number(d.decision.remaining)} of ${number(d.decision.quota)}` : d.reason ? plain(d.reason, 60) : '–')
      group.age()
    },
    age() {
      const passed = (state.now - group.at) / 1000
      setText(ago, passed < 1.5 ? 'now' : duration(Math.round(passed)) + ' ago')
    },
  }
  return group
}

// add puts a decision on top, and returns the group that is new, or null.
function add(d) {
  const made = groups[0]?.like === likeness(d) ? null : makeGroup(d)
  if (made) groups.unshift(made)
  groups[0].add(d)
  return made
}

// redraw draws the whole list again.
export function redraw() {
  newest = state.decisions.at(-1) ?? newest
  groups = []
  for (const d of (paused ?? state.decisions).filter(matches)) add(d)
  groups.splice(most)
  if (!groups.length) {
    body = null
    const filters = outcome.value || zone.value || text.value
    show(byId('decisions-body'), el('p', { class: 'empty' }, filters ? 'No decision matches the filters yet.' : 'No requests yet. Send one that a zone matches, and its decision appears here.'))
  } else {
    body = el('tbody', {}, groups.map(g => g.row))
    show(byId('decisions-body'), el('table', { class: 'decisions stack' }, el('thead', {}, el('tr', {}, ['Time', 'Outcome', 'Zone', 'Key', 'Left', 'Request'].map(t => el('th', { scope: 'col' }, t)))), body))
  }
  remark()
}

// updateDecisions adds what has come.
export function updateDecisions() {
  const fresh = state.decisions.length - 1 - state.decisions.lastIndexOf(newest)
  newest = state.decisions.at(-1) ?? newest
  skipped = state.skipped
  if (paused) {
    missed += fresh
    remark()
    return
  }
  if (!body || fresh > most) { redraw(); return }
  for (const d of fresh ? state.decisions.slice(-fresh).filter(matches) : []) {
    const made = add(d)
    if (made) body.prepend(made.row)
  }
  for (const g of groups.splice(most)) g.row.remove()
  for (const g of groups) g.age()
  remark()
}

const remark = () => setText(byId('decisions-note'), paused ? `Paused. New since then: ${number(missed)}.` : skipped ? `A sample: ${number(skipped)} others in the last second are not shown.` : '')
