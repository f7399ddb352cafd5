// Why is a client refused, or not? Looks up a key in one zone or in all.

import { buttons, onDone } from './actions.js'
import { call, zonePath } from './api.js'
import { bucket } from './bucket.js'
import { copies } from './commands.js'
import { byId, el, goTo, outcomePill, pill, show } from './dom.js'
import { queryOf, showKey } from './key.js'
import { command } from './shell.js'
import { state, zoneNamed } from './state.js'
import { duration, number, plain, time, visible, zonesNamed } from './text.js'

const select = byId('why-zone')
let asked = null // how to look it up again

const chosen = () => state.zones[select.selectedIndex - 1]

// drawForm offers the zones, and the parts of the key of the one that is chosen.
export function drawForm() {
  const before = select.value
  show(select, el('option', { value: '' }, 'all zones'), state.zones.map(z => el('option', { value: z.name }, plain(z.name, 60))))
  select.selectedIndex = Math.max(0, state.zones.findIndex(z => z.name === before) + 1)
  drawParts()
}

function drawParts() {
  const z = chosen(), parts = z?.parts?.length > 1 ? z.parts : [z ? z.parts?.[0] ?? '' : 'Address or key']
  const old = [...byId('why-parts').querySelectorAll('input')].map(i => i.value)
  if (z && !z.parts?.length) {
    show(byId('why-parts'), el('span', { class: 'note' }, 'This zone has no key: one limit for all requests.'))
    return
  }
  show(byId('why-parts'), parts.map((p, i) => el('label', {}, visible(p, 40), ' ', el('input', { name: 'part', value: old[i] ?? '', autocomplete: 'off', spellcheck: 'false', placeholder: z ? null : '203.0.113.7' }))))
}

select.addEventListener('change', drawParts)
byId('why-form').addEventListener('submit', e => {
  e.preventDefault()
  const z = chosen(), values = [...byId('why-parts').querySelectorAll('input')].map(i => i.value)
  keep(z, new URLSearchParams(values.length === 1 ? [['key', values[0]]] : values.map(v => ['part', v])))
})

// keep looks up a key, and has the address of the page say so.
function keep(z, query) {
  const asks = new URLSearchParams([...query, ...z ? [['zone', z.name]] : []])
  history.replaceState(null, '', '#' + asks)
  show(byId('find-body'))
  lookUp(pathOf(z, query))
}

const pathOf = (z, query) => (z ? zonePath(z, '/key') : 'key') + '?' + query

// lookUpAs fills in the form, and looks up a key in a zone, or in all zones without one.
export function lookUpAs(z, query) {
  select.selectedIndex = z?.index === undefined ? 0 : z.index + 1
  drawParts()
  const values = query.has('part') ? query.getAll('part') : [query.get('key') ?? '']
  byId('why-parts').querySelectorAll('input').forEach((input, i) => { input.value = values[i] ?? '' })
  lookUp(pathOf(z, query))
}

// whyOf looks up a key of a zone, and whyOfAll one in all zones.
export function whyOf(z, k) {
  select.selectedIndex = z.index + 1
  drawParts()
  const parts = k.parts?.length > 1 ? k.parts : [k.key]
  byId('why-parts').querySelectorAll('input').forEach((input, i) => { input.value = parts[i] ?? '' })
  goTo('why')
  keep(z, new URLSearchParams(queryOf(k)))
}

export function whyOfAll(k) {
  select.selectedIndex = 0
  drawParts()
  byId('why-parts').querySelector('input').value = k.key
  goTo('why')
  keep(null, new URLSearchParams(queryOf(k)))
}

async function lookUp(path) {
  asked = path
  try {
    const answer = await call('GET', path)
    if (asked !== path) return
    const all = [answer].flat().sort((a, b) => urgency(b) - urgency(a))
    const failed = Map.groupBy(all.filter(k => k.error), k => k.error)
    show(byId('why-body'), all.filter(k => !k.error).map(verdict), [...failed].map(([error, of]) => failure(error, of.map(k => k.zone))))
    if (!all.length) show(byId('why-body'), el('p', { class: 'empty' }, 'There are no zones.'))
  } catch (error) {
    if (asked === path) show(byId('why-body'), el('p', { class: 'error' }, plain(error.message, 400)))
  }
}

// urgency sorts answers: those that refuse first.
const urgency = k => k.error ? 0 : k.refused ? 3 : k.outcome === 'dry_run' ? 2 : 1

onDone(() => { if (asked) lookUp(asked) })

const failure = (error, zones) => el('p', { class: 'note' }, zonesNamed(zones), ': ', plain(error, 300), '.')

function verdict(k) {
  const z = zoneNamed(k.zone) ?? { name: k.zone, key: '?', index: 0 }
  const extra = []
  if (k.override) extra.push(['Override', overrideText(k.override)])
  if (k.refusals) extra.push(['Refusals', `${number(k.refusals.count)} so far; ${number(k.refusals.of)} in ${duration(k.refusals.within)} lead to a ban`])
  if (k.lately) extra.push(['Lately', `${number(k.lately.requests)} requests, ${number(k.lately.refused)} refused, since ${time(Date.parse(k.lately.since))}`])
  if (k.assumed) extra.push(['Assumed limit', k.assumed])
  if (k.plans) extra.push(['Plans', k.plans.map(p => `${plain(p.plan || 'default', 30)}: ${p.unlimited ? 'unlimited' : `${number(p.used)} of ${number(p.quota)}`}${p.refused ? ', refused' : ''}`).join('; ')])
  const ends = k.ban ? ['unban'] : k.override ? ['clear'] : []
  const names = k.outcome === 'rejected' ? [] : ['reset', 'raise', 'exempt', ...k.ban ? [] : ['ban']] // only the config can change that
  const of = k.override?.network ? { key: k.override.network, network: k.override.network } : k // whose rule it is
  if (k.doubt) extra.push(['Probably no key', plain(k.doubt, 300)])
  return el('article', { class: 'verdict' },
    el('h3', {}, outcomePill(k.outcome), ' ', showKey(k, z)),
    el('p', { class: 'because' }, 'Zone ', visible(k.zone, 48), ' ', reason(k)),
    k.quota > 0 && (k.used > 0 || k.refused) ? bucket(k) : null,
    el('dl', {}, el('dt', {}, 'Limit'), el('dd', {}, k.limit, overrides(k) ? ' (replaced by the override)' : null, k.rollout ? [' ', pill(k.rollout, 'dry')] : null), extra.map(([name, value]) => [el('dt', {}, name), el('dd', {}, value)])),
    el('div', { class: 'actions' }, buttons(names, z, k), buttons(ends, z, of), copies(command('', 'get', z, k), command(state.start.address, 'get', z, k))))
}

// overrides reports whether the numbers of a key are those of an override.
const overrides = k => k.override?.kind === 'limit' && !k.override.elsewhere

// until says when a moment comes that is some seconds away.
const until = s => `at ${time(Date.now() + s * 1000)}, in ${duration(s)}`

function overrideText(o) {
  const what = o.limit ?? (o.kind === 'banned' ? 'banned' : 'exempt')
  return what + (o.ends_in ? ', until ' + time(Date.now() + o.ends_in * 1000) : o.kind === 'banned' ? ', until it is unbanned' : ', until it is cleared') + (o.note ? ': ' + plain(o.note, 200) : '')
}

// reason says what the zone does to the key, and why.
function reason(k) {
  const used = `${number(k.used)} of ${number(k.quota)} used${k.owed ? ` (${number(k.owed)} owed)` : ''}${overrides(k) ? ` (override ${overrideText(k.override)})` : ''}.`
  if (k.blocked_address) return `blocks all requests from ${plain(k.blocked_address)} with status ${k.block_status} (block). Only the config can change that.`
  if (k.ban) {
    const end = k.ban.ends_in ? 'until ' + time(Date.now() + k.ban.ends_in * 1000) : 'until it is unbanned'
    return k.ban.by === 'refusals' ? `refuses it: it was refused too often, and is banned ${end}.` : `refuses it: an operator has banned ${k.override?.network ? 'its network ' + k.override.network : 'it'} ${end}.`
  }
  switch (k.outcome) {
    case 'exempt': return k.override ? 'does not limit it: an override exempts it.' : 'does not limit requests without a key (missing_key skip).'
    case 'rejected': return `rejects requests without a key with status ${k.status} (missing_key reject). Only the config can change that.`
    case 'allowed': return `allows it: ${used}`
    case 'dry_run': return `would refuse it, but this is a dry run: ${used}` + (k.retry_after ? ` Within the limit again ${until(k.retry_after)}.` : '')
  }
  if (k.quota === 0) return 'refuses it: its limit is 0.'
  if (k.never) return `refuses it: a request costs ${number(k.cost)}, and the limit never allows more than ${number(k.quota)}.`
  if (k.slots) return `refuses it: ${number(k.used)} of ${number(k.quota)} slots are taken. One is free at the latest ${until(k.retry_after ?? 0)}.`
  if (k.cost > 1 && k.remaining > 0) return `refuses it: ${k.cost_last ? 'its last request cost' : 'a request costs'} ${number(k.cost)}, and only ${number(k.remaining)} of ${number(k.quota)} are left. The next passes ${until(k.retry_after)}.`
  if (k.refusals?.begins) return `refuses it: ${used} The next request is refused, and begins a ban of ${duration(k.refusals.next_ban)}.`
  return `refuses it: ${used} The next request passes ${until(k.retry_after ?? 0)}.`
}
