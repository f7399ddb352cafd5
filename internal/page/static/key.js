// Keys, as the admin API has them: text, or base64 if they are not UTF-8.

import { el } from './dom.js'
import { number, plain, visible } from './text.js'

const strict = new TextDecoder('utf-8', { fatal: true })

// bytesOf returns the bytes of a key.
export function bytesOf(k) {
  if (k.key_base64) return Uint8Array.from(atob(k.key_base64), c => c.charCodeAt(0))
  return new TextEncoder().encode(k.key)
}

// runes splits bytes into characters, and bytes that are none.
export function runes(bytes) {
  const all = []
  for (let i = 0; i < bytes.length;) {
    const lead = bytes[i], length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
    const raw = bytes.subarray(i, i + length)
    let text = null
    try { text = strict.decode(raw) } catch { /* not UTF-8 */ }
    if (text === '') text = '\ufeff' // which a decoder leaves out
    if (text === null || raw.length < length) all.push({ raw: bytes.subarray(i, i + 1) })
    else all.push({ text, raw })
    i += all.at(-1).raw.length
  }
  return all
}

// textOf returns a key as text, with \x.. for bytes that are not UTF-8.
function textOf(k) {
  if (!k.key_base64) return k.key
  return runes(bytesOf(k)).map(r => r.text ?? '\\x' + r.raw[0].toString(16).padStart(2, '0')).join('')
}

// isNone reports whether a key has no value.
export const isNone = k => !k.key_truncated && (k.key === '' || k.parts?.length > 0 && k.parts.every(p => p === ''))

// partsOf returns what a key is shown as.
const partsOf = k => k.parts?.length && !k.key_base64 ? k.parts : [textOf(k)]

// showKey shows a key of a zone.
export function showKey(k, zone) {
  if (isNone(k)) return el('span', { class: 'none' }, zone && !zone.key ? 'all requests' : 'no key')
  const shown = partsOf(k).map(p => el('code', { class: 'key' }, p === '' ? '∅' : visible(p)))
  return el('span', { class: 'keys' }, shown, k.key_truncated ? el('span', { class: 'cut' }, `beginning of ${number(k.key_truncated)} bytes`) : null)
}

// nameKey is showKey for labels.
export function nameKey(k, zone) {
  return isNone(k) ? (zone && !zone.key ? 'all requests' : 'requests without a key') : partsOf(k).map(p => plain(p, 40)).join(' ')
}

// idOf is another text for each key.
export const idOf = k => (k.key_base64 ?? '\0' + k.key) + (k.key_truncated ? '\0' + k.key_truncated : '')

// queryOf names a key in a request, or a network that has an override.
export function queryOf(k) {
  if (k.network) return '?key=' + encodeURIComponent(k.network)
  let binary = ''
  for (const b of bytesOf(k)) binary += String.fromCharCode(b)
  return '?key_base64=' + encodeURIComponent(btoa(binary))
}
