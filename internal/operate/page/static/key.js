// Keys, as the admin API has them: text, or base64 if they are not UTF-8. And outcomes.

import { el, pill } from './dom.js'
import { number, plain, visible } from './text.js'

// binary has a character for each byte of a text.
export const binary = text => Array.from(new TextEncoder().encode(text), b => String.fromCharCode(b)).join('')

// bytesOf returns the bytes of a key, each as a character.
export const bytesOf = k => k.key_base64 ? atob(k.key_base64) : binary(k.key)

// isNone reports whether a key has no value.
export const isNone = k => !k.key_truncated && (k.key === '' || k.parts?.length > 0 && k.parts.every(p => p === ''))

// partsOf returns what a key is shown as: with \x.. for what is not ASCII, if it is not UTF-8.
function partsOf(k) {
  if (k.key_base64) return [bytesOf(k).replace(/[^ -~]/g, c => '\\x' + c.charCodeAt(0).toString(16).padStart(2, '0'))]
  return k.parts?.length ? k.parts : [k.key]
}

// showKey shows a key of a zone.
export function showKey(k, zone) {
  if (isNone(k)) return el('span', { class: 'none' }, zone && !zone.key ? 'all requests' : 'no key')
  const cut = k.key_truncated && el('span', { class: 'cut' }, `beginning of ${number(k.key_truncated)} bytes`)
  return el('span', { class: 'keys' }, partsOf(k).map(p => el('code', { class: 'key' }, p === '' ? '∅' : visible(p))),
    cut || null)
}

// nameKey is showKey for labels.
export function nameKey(k, zone) {
  if (isNone(k)) return zone && !zone.key ? 'all requests' : 'requests without a key'
  return partsOf(k).map(p => plain(p, 40)).join(' ')
}

// idOf is another text for each key.
export const idOf = k => (k.key_base64 ?? '\0' + k.key) + (k.key_truncated ? '\0' + k.key_truncated : '')

// queryOf names a key in a request, or a network that has an override.
export const queryOf = k =>
  k.network ? '?key=' + encodeURIComponent(k.network) : '?key_base64=' + encodeURIComponent(btoa(bytesOf(k)))

// outcomePill is an outcome with its color: what a limit refuses, what is banned and what the config rejects differ.
const kinds = { limited: 'limited', banned: 'banned', rejected: 'blocked', dry_run: 'dry',
  allowed: 'good', exempt: 'good' }
export const outcomePill = o => pill(o.replaceAll('_', ' '), kinds[o] ?? 'odd')
