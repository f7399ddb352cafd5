// Commands as a shell reads them. The rules are those of the command line, so that what is printed
// there and shown here is the same.

import { bytesOf, runes } from './key.js'

const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u
const harmless = /^[\p{L}\p{Nd}\-._~/:@%+,=]$/u

// word quotes a text as one word for a shell, unless that is not needed. What is not printable becomes
// an escape in $'...', which bash, zsh and ksh understand.
export const word = text => quote(runes(new TextEncoder().encode(text)))

function quote(all) {
  if (!all.every(r => r.text !== undefined && printable.test(r.text))) return "$'" + all.map(escape).join('') + "'"
  const text = all.map(r => r.text).join('')
  if (text === '' || /^[~=]/.test(text) || !all.every(r => harmless.test(r.text))) return "'" + text.replaceAll("'", "'\\''") + "'"
  return text
}

function escape(r) {
  switch (r.text) {
    case '\\': case "'": return '\\' + r.text
    case '\n': return '\\n'
    case '\t': return '\\t'
  }
  if (r.text !== undefined && printable.test(r.text)) return r.text
  return Array.from(r.raw, b => '\\' + b.toString(8).padStart(3, '0')).join('')
}

// command returns the command that does the same for a key. The flags are words already.
export function command(address, name, zone, k, flags = [], last = []) {
  const bytes = bytesOf(k), encoder = new TextEncoder()
  const parts = k.parts?.length && !k.key_base64 ? k.parts.map(p => encoder.encode(p)) : [bytes]
  let args = [encoder.encode(zone.name), ...(zone.key === '' ? [] : parts)]
  const all = ['caddy', 'rate-limit', name]
  if (address) all.push('--address', word(address))
  all.push(...flags)
  if (bytes.includes(0)) { // an argument cannot have a NUL byte
    args = args.slice(0, 1)
    all.push('--key-base64', btoa(Array.from(bytes, b => String.fromCharCode(b)).join('')))
  }
  args.push(...last.map(text => encoder.encode(text)))
  if (args.some(a => a[0] === 0x2d)) all.push('--')
  return [...all, ...args.map(a => quote(runes(a)))].join(' ')
}
