// Why is a client refused, or not? Looks up a key in one zone or in all.

import { acts, onDone } from './actions.js'
import { call, zonePath } from './api.js'
import { button, byId, el, empty, facts, note, para, pill, problem, show } from './dom.js'
import { idOf, isNone, nameKey, outcomePill, queryOf, showKey } from './key.js'
import { addressed, command, copies } from './shell.js'
import { state, zoneNamed } from './state.js'
import { zonesNamed } from './stores.js'
import { count, duration, moments, number, plain, time, visible } from './text.js'

const select = byId('why-zone'), longest = 2000 // characters of a sentence
let asked = null // how to look it up again

const chosen = () => state.zones[select.selectedIndex - 1]
const fields = () => [...byId('why-parts').querySelectorAll('input')]

// zoneOptions offers all zones, and keeps the one that is chosen.
export function zoneOptions(select, all) {
  const before = select.value
  show(select, el('option', { value: '' }, all),
    state.zones.map(z => el('option', { value: z.name }, plain(z.name, 60))))
  select.selectedIndex = Math.max(0, state.zones.findIndex(z => z.name === before) + 1)
}

// drawForm offers the zones, and the parts of the key of the one that is chosen.
export function drawForm() {
  zoneOptions(select, 'all zones')
  drawParts()
}

function drawParts() {
  const z = chosen(), parts = z ? z.parts : ['Address or key']
  show(byId('why-parts'), parts.map((p, i) => el('label', { key: 'part' + i }, visible(p, 40), ' ',
    el('input', { name: 'part', autocomplete: 'off', spellcheck: 'false', placeholder: z ? null : '203.0.113.7' }))),
  parts.length ? null : el('span', { class: 'note' }, 'This zone has no key: one limit for all requests.'))
}

select.addEventListener('change', drawParts)
byId('why-form').addEventListener('submit', e => {
  e.preventDefault()
  const values = fields().map(i => i.value)
  look(chosen(), new URLSearchParams(values.length > 1 ? values.map(v => ['part', v]) : [['key', values[0] ?? '']]), values)
})

// look looks up a key, and has the address of the page say so: it can be sent to somebody else. The form shows these values.
function look(z, query, values) {
  history.replaceState(null, '', '#' + new URLSearchParams([...query, ...z ? [['zone', z.name]] : []]))
  follow(values)
}

// follow looks up what the address asks for.
export function follow(values) {
  const query = new URLSearchParams(location.hash.slice(1)), name = query.get('zone'), text = query.get('key') ?? ''
  if (!['key', 'part', 'key_base64', 'zone'].some(n => query.has(n)) || !state.start) return
  query.delete('zone')
  const z = name === null ? null : zoneNamed(name) ?? { name }
  fillIn(z, values ?? (query.has('part') ? query.getAll('part') : [text]))
  lookUp(z, query)
  show(byId('find-body'))
  if (!z && text) listPart(text)
  if (!values) goTo('why')
}
addEventListener('hashchange', () => follow())

function fillIn(z, values) {
  select.selectedIndex = state.zones.findIndex(other => other.name === z?.name) + 1
  drawParts()
  fields().forEach((input, i) => { input.value = values[i] ?? '' })
}

addEventListener('keydown', e => {
  const writes = byId('dialog').open || e.target.closest?.('input, select, textarea')
  if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || writes) return
  e.preventDefault()
  fillIn(null, [''])
  goTo('why')
  fields()[0].focus()
})

// listPart lists the keys that have a text in them, of those that zones know.
async function listPart(text) {
  const body = byId('find-body'), wanted = text.toLowerCase(), found = new Map()
  const add = (z, k, n) => {
    if (!z || isNone(k) || !k.key.toLowerCase().includes(wanted) || k.key.toLowerCase() === wanted) return
    const at = found.get(idOf(k)) ?? { k, z, n: 0 }
    found.set(idOf(k), { ...at, n: Math.max(at.n, n) })
  }
  for (const z of state.zones) for (const r of z.refusing.values()) add(z, r.key, r.requests)
  try {
    for (const top of await call('GET', 'top?n=200')) for (const k of top.keys) add(zoneNamed(top.zone), k, k.requests)
  } catch { /* the key itself is looked up, and says what is wrong */ }
  if (new URLSearchParams(location.hash.slice(1)).get('key') !== text) return // another one was asked for since
  const all = [...found.values()].sort((a, b) => b.n - a.n)
  show(body, all.length ? [el('h3', {}, `${count(all.length, 'frequent key')} with this text`),
    el('ul', { class: 'found' }, all.slice(0, 12).map(({ k, z }) => el('li', {}, button(showKey(k, z),
      () => look(null, new URLSearchParams(k.key_base64 ? { key_base64: k.key_base64 } : { key: k.key }), [k.key]),
      { 'aria-label': 'Find ' + nameKey(k, z) }))))] : null)
}

// whyButton looks up a key in a zone, or in all.
export function whyButton(z, k, name) {
  if (k.key_truncated) return null
  const press = () => {
    look(z, new URLSearchParams(queryOf(k)), k.parts?.length > 1 && z ? k.parts : [k.key])
    goTo('why')
  }
  return button('Why?', press, { 'aria-label': `Why? ${name}${z ? ` in zone ${plain(z.name, 40)}` : ''}` })
}

// goTo shows a section, and puts the focus on its title.
export function goTo(id) {
  byId(id).scrollIntoView()
  byId(id).querySelector('h2').focus({ preventScroll: true })
}

async function lookUp(z, query) {
  const path = (z ? zonePath(z, '/key') : 'key') + '?' + query, body = byId('why-body')
  if (asked?.path !== path) show(body, empty('Asking …'))
  asked = { path, again: () => lookUp(z, query) }
  try {
    const answer = await call('GET', path)
    if (asked.path !== path) return
    const all = [answer].flat().sort((a, b) => urgency(b) - urgency(a))
    const failed = Map.groupBy(all.filter(k => k.error), k => k.error)
    show(body, all.filter(k => !k.error).map(verdict), [...failed].map(([error, of]) =>
      note(zonesNamed(of.map(k => k.zone)), ': ', plain(error, 300), '.')),
        all.length ? null : empty('There are no zones.'))
  } catch (error) {
    if (asked.path === path) show(body, problem(plain(error.message, 400)))
  }
}
onDone(() => asked?.again())

// urgency sorts answers: those that refuse first.
const urgency = k => k.error ? 0 : k.refused ? 3 : k.outcome === 'dry_run' ? 2 : 1

function verdict(k) {
  const z = zoneNamed(k.zone) ?? { name: k.zone, key: '?' }
  const plan = p => `${plain(p.plan || 'default', 30)}: ${p.unlimited ? 'unlimited' : `${number(p.used)} of ${number(p.quota)}`}${p.refused ? ', refused' : ''}`
  const more = [
    k.quota > 0 && ['Used', `${number(k.used)} of ${number(k.quota)}`],
    ['Limit', [k.limit, overrides(k) ? ' (replaced by the override)' : null,
      k.rollout ? [' ', pill(k.rollout, 'dry')] : null]],
    k.quota > 0 && k.reset_after > 0 && ['All of it back', [k.slots ? 'at the latest ' : '', until(Date.now() + k.reset_after * 1000)]],
    k.override && ['Override', overrideText(k.override)],
    k.refusals && ['Refusals', `${number(k.refusals.count)} so far; ${number(k.refusals.of)} in ${duration(k.refusals.within)} lead to a ban`],
    k.lately && ['Lately', `${number(k.lately.requests)} requests, ${number(k.lately.refused)} ${k.lately.dry_run ? 'would have been ' : ''}refused, since ${time(k.lately.since)}`],
    k.assumed && ['Assumed limit', k.assumed],
    k.plans && ['Plans', k.plans.map(plan).join('; ')],
  ]
  const ends = k.ban ? ['unban'] : k.override ? ['clear'] : []
  // only the config can change that
  const names = k.outcome === 'rejected' ? [] : ['reset', 'raise', 'exempt', ...k.ban ? [] : ['ban']]
  const ofNetwork = k.override?.network && k.ban?.by !== 'refusals' // the rule that can be ended
  const of = ofNetwork ? { key: k.override.network, network: k.override.network } : k
  return el('article', { key: k.zone + idOf(k), class: 'verdict' },
    el('h3', {}, outcomePill(k.outcome), ' ', showKey(k, z)),
    para('because', local(k.why)),
    facts('', more.filter(Boolean)),
    (k.commands ?? []).map(({ to, run }) =>
      para('', `To ${to}: `, copies(run.join(' && '), run.map(addressed).join(' && ')))),
    el('div', { class: 'actions' }, acts(names, z, k), acts(ends, z, of),
      copies(command('', 'get', z, k), command(state.start.address, 'get', z, k))))
}

// overrides reports whether the numbers of a key are those of an override.
const overrides = k => k.override?.kind === 'limit' && !k.override.elsewhere

// until says when a moment comes, in milliseconds, and counts down.
export const until = at => [time(at), ' (', el('span', { 'data-until': at }, left(at)), ')']

// local is a sentence of Caddy with the times of this place and of its clock. One that has long passed is in a note.
const local = text => text.split(moments).map((piece, i) => {
  const at = Date.parse(piece) - state.now + state.came
  return i % 2 && at > Date.now() - 60e3 ? until(at) : visible(piece, longest)
})

const left = at => at > Date.now() ? 'in ' + duration(Math.ceil((at - Date.now()) / 1000)) : 'now'

setInterval(() => {
  const all = [...document.querySelectorAll('#why-body [data-until]')],
    passed = all.some(e => e.dataset.until <= Date.now() && e.textContent !== 'now')
  for (const e of all) e.textContent = left(Number(e.dataset.until))
  if (passed) asked?.again()
}, 1000)

function overrideText(o) {
  const what = o.limit ?? (o.kind === 'banned' ? 'banned' : 'exempt')
  const end = o.until ? time(o.until) : o.kind === 'banned' ? 'it is unbanned' : 'it is cleared'
  return `${what}, until ${end}` + (o.note ? ': ' + plain(o.note, 200) : '')
}
