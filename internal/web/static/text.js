// Texts for people: numbers, times and durations as the reader's locale has them, and texts that
// clients choose, with everything visible.

import { el } from './dom.js'

const locale = navigator.languages?.length ? [...navigator.languages] : undefined
const formats = new Map()

function format(options, n) {
  const name = JSON.stringify(options)
  if (!formats.has(name)) formats.set(name, new Intl.NumberFormat(locale, options))
  return formats.get(name).format(n)
}

export const number = n => format({}, n)

export const count = (n, one, many) => number(n) + ' ' + (n === 1 ? one : many ?? one + 's')

// rate is a number per second.
export const rate = n => format({ maximumFractionDigits: n < 10 ? 1 : 0 }, n)

// share is a fraction in percent, which is never shown as 0 or 1 if it is not.
export function share(of, all, digits = 0) {
  if (!all) return '–'
  const f = of / all, close = f > 0 && f < 0.01 || f > 0.99 && f < 1
  return format({ style: 'percent', maximumFractionDigits: close ? 2 : digits }, f)
}

const units = [['day', 86400], ['hour', 3600], ['minute', 60], ['second', 1]]
const unit = (name, n, digits) =>
  format({ style: 'unit', unit: name, unitDisplay: 'short', maximumFractionDigits: digits }, n)

// duration is a time span, given in seconds.
export function duration(seconds) {
  if (!(seconds > 0)) return unit('second', 0, 0)
  if (seconds < 1e-3) return unit('microsecond', Math.max(1, seconds * 1e6), 0)
  if (seconds < 0.9995) return unit('millisecond', seconds * 1e3, seconds < 0.01 ? 1 : 0)
  if (seconds < 60) return unit('second', seconds, seconds < 10 ? 1 : 0)
  const i = units.findIndex(([, size]) => seconds >= size), [name, size] = units[i]
  const whole = Math.floor(seconds / size), [less, part] = units[Math.min(i + 1, units.length - 1)]
  const rest = Math.floor((seconds - whole * size) / part)
  return unit(name, whole, 0) + (rest > 0 ? ' ' + unit(less, rest, 0) : '')
}

const clock = new Intl.DateTimeFormat(locale, { timeStyle: 'medium' })
const date = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' })

// time is a time of day, or with its date if it is not today. It takes milliseconds or a text.
export function time(when) {
  const at = new Date(when), today = at.toDateString() === new Date().toDateString()
  return (Math.abs(at - Date.now()) < 12 * 3600e3 || today ? clock : date).format(at)
}

// moments matches the times in sentences of Caddy.
export const moments = /(\d{4}-\d\d-\d\dT[\d:.]+Z)/g

// odd matches what a reader would not see, or see wrongly: control and format characters, which turn
// the direction of a text, spaces that are none, and piles of accents.
const odd = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}|(?<=\p{M}\p{M})\p{M}/u

// pieces splits a text into pieces, some of which are escapes.
function pieces(text, most) {
  const all = []
  let plain = '', n = 0, cut = false
  for (const c of text) {
    if (++n > most) { cut = true; break }
    if (!odd.test(plain.slice(-4) + c) || !odd.test(c) && !/\p{M}/u.test(c)) { plain += c; continue }
    if (plain) all.push([plain])
    plain = ''
    all.push([escapeOf(c), true])
  }
  if (plain) all.push([plain])
  return [all, cut]
}

function escapeOf(c) {
  const code = c.codePointAt(0), known = { 9: '\\t', 10: '\\n', 13: '\\r' }[code]
  return known ?? (code < 0x100 ? '\\x' + code.toString(16).padStart(2, '0') : '\\u{' + code.toString(16) + '}')
}

// visible shows a text that a client or a config has chosen.
export function visible(text, most = 72) {
  const [all, cut] = pieces(text, most)
  return el('bdi', { class: 'text', dir: 'ltr' },
    all.map(([piece, isEscape]) => isEscape ? el('span', { class: 'escape' }, piece) : piece),
    cut ? el('span', { class: 'cut', title: 'The text is longer' }, '…') : null)
}

// plain is visible as a string, for labels.
export function plain(text, most = 72) {
  const [all, cut] = pieces(text, most)
  return all.map(([piece]) => piece).join('') + (cut ? '…' : '')
}
