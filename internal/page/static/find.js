// One box to find a client, in any zone and by a part of its key. The address of the page keeps what is asked, so that
// it can be sent to somebody else.

import { call } from './api.js'
import { button, byId, el, note, problem, show } from './dom.js'
import { idOf, isNone, nameKey, showKey } from './key.js'
import { state, zoneNamed } from './state.js'
import { count, number, plain, visible } from './text.js'
import { goTo, lookUpAs } from './why.js'

const most = 12 // keys that are listed
const looked = 200 // keys of each zone that are looked at

// question returns what the address of the page asks for, or null.
function question() {
  const all = new URLSearchParams(location.hash.slice(1))
  return ['key', 'part', 'key_base64', 'zone'].some(n => all.has(n)) ? all : null
}

// follow looks up what the address asks for.
export function follow() {
  const asks = question()
  if (!asks || !state.start) return
  const text = asks.get('key') ?? '', zone = asks.get('zone')
  if (!zone) byId('find').value = text
  asks.delete('zone')
  lookUpAs(zone === null ? null : zoneNamed(zone) ?? { name: zone }, asks)
  show(byId('find-body'))
  if (zone === null && text) listPart(text)
  goTo('why')
}

// listPart lists the keys that have a text in them, of those that zones know.
async function listPart(text) {
  const body = byId('find-body'), wanted = text.toLowerCase(), found = new Map()
  const add = (z, k, n) => {
    if (!z || isNone(k) || !k.key.toLowerCase().includes(wanted)) return
    const at = found.get(idOf(k)) ?? { k, z, zones: new Set(), n: 0 }
    at.zones.add(z.name)
    at.n = Math.max(at.n, n)
    found.set(idOf(k), at)
  }
  for (const z of state.zones) for (const r of z.refusing.values()) add(z, r.key, r.requests)
  try {
    for (const top of await call('GET', 'top?n=' + looked)) {
      for (const k of top.keys) add(zoneNamed(top.zone), k, k.requests)
    }
  } catch (e) {
    return show(body, problem(plain(e.message, 300)))
  }
  if (question()?.get('key') !== text) return // another one was asked for since
  const all = [...found.values()].filter(f => f.k.key.toLowerCase() !== wanted).sort((a, b) => b.n - a.n)
  if (!all.length) return show(body, found.size ? null : note('No frequent key has this text in it.'))
  show(body, el('h3', {}, `${count(all.length, 'frequent key')} with this text`),
    el('ul', { class: 'found' }, all.slice(0, most).map(item)),
    all.length > most ? note('These have the most requests. A longer text finds fewer.') : null)
}

const item = ({ k, z, zones }) => el('li', {},
  button(showKey(k, z), () => ask(k), { 'aria-label': 'Find ' + nameKey(k, z) }),
  el('span', { class: 'under' }, ' ', [...zones].slice(0, 4).map((name, i) => [i ? ', ' : '', visible(name, 30)]),
    zones.size > 4 ? `, ${number(zones.size - 4)} more` : ''))

// ask puts a key into the address, in all zones.
function ask(k) {
  location.hash = new URLSearchParams(k.key_base64 ? { key_base64: k.key_base64 } : { key: k.key }).toString()
}

byId('find-form').addEventListener('submit', e => {
  e.preventDefault()
  const text = byId('find').value.trim(), before = location.hash
  if (!text) return
  ask({ key: text })
  if (location.hash === before) follow()
})
addEventListener('hashchange', follow)
addEventListener('keydown', e => {
  const writes = byId('dialog').open || e.target.closest?.('input, select, textarea')
  if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || writes) return
  e.preventDefault()
  byId('find').focus()
  byId('find').select()
})
