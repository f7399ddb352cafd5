// Commands that do and show the same as the page, as a shell reads them.

import { button, copy, el } from './dom.js'
import { binary, bytesOf } from './key.js'
import { news } from './news.js'
import { state } from './state.js'

const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u
const harmless = /^[\p{L}\p{Nd}\-._/:@%+,][\p{L}\p{Nd}\-._~/:@%+,=]*$/u

// word quotes a text as one word for a shell, unless that is not needed. What is not printable, or not UTF-8, becomes
// $'...' with escapes, which bash, zsh and ksh understand.
export function word(text, bytes = binary(text)) {
  if (text === null || !printable.test(text)) {
    return "$'" + bytes.replace(/[^ -&(-[\]-~]/g, c => '\\' + c.charCodeAt(0).toString(8).padStart(3, '0')) + "'"
  }
  return harmless.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'"
}

// line is a command. Its flags and arguments are words already.
function line(address, name, flags, args) {
  const dash = args.some(a => /^(\$?')?-/.test(a)) ? ['--'] : []
  return ['caddy', 'rate-limit', name, ...address ? ['--address', word(address)] : [], ...flags, ...dash,
    ...args].join(' ')
}

// command returns the command that does the same for a key. The flags are words already.
export function command(address, name, zone, k, flags = [], last = []) {
  const bytes = bytesOf(k), nul = bytes.includes('\0') // which an argument cannot have
  const parts = k.key_base64 ? [word(null, bytes)] : (k.parts?.length ? k.parts : [k.key]).map(p => word(p))
  const args = [word(zone.name), ...zone.key === '' || nul ? [] : parts, ...last.map(t => word(t))]
  return line(address, name, nul ? [...flags, '--key-base64', btoa(bytes)] : flags, args)
}

// addressed is a command of Caddy's with what names its admin endpoint.
export const addressed = text => state.start.address
  ? text.replace(/^caddy rate-limit \S+/, name => `${name} --address ${word(state.start.address)}`) : text

// copies returns a button that copies a command, of which it shows another form.
export const copies = (shown, full) => button(el('code', {}, shown),
  async () => news(await copy(full) ? 'Copied: ' + full : full),
  { class: 'terminal', title: full, 'aria-label': 'Copy the command: ' + shown })

// terminal returns a button for the command that shows the same as a figure.
export function terminal(name, flags = [], args = []) {
  const form = address => line(address, name, flags, args.map(a => word(a)))
  return copies(form(''), form(state.start.address))
}

// titled returns a title with such a button.
export const titled = (text, ...of) => el('div', { class: 'title' }, el('h3', {}, text), terminal(...of))
