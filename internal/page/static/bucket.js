// The limit of a key as a picture: what is left now, and when more of it comes back.

import { el, svg } from './dom.js'
import { duration, number, time } from './text.js'

const width = 320, height = 120, left = 8, top = 14, floor = 92

// bucket draws the state of a key. How the quota comes back depends on the algorithm.
export function bucket(k) {
  const q = k.quota, now = Date.now(), end = Math.max(k.reset_after, k.retry_after ?? 0)
  const algorithm = k.limit.split(' ')[0], steady = /bucket|gcra|counter/.test(algorithm) && !/refill interval/.test(k.limit)
  const x = s => left + (end ? s / end : 0) * (width - 2 * left)
  const y = n => floor - Math.min(1, Math.max(0, n) / Math.max(1, q)) * (floor - top)
  const marks = []
  if (k.next_after > 0 && !k.slots && k.next_after !== k.retry_after) marks.push(['more', k.next_after, 'More is available'])
  if (k.retry_after > 0 && !(k.ban && !k.ban.ends_in)) marks.push(['next', k.retry_after, k.ban ? 'The ban ends, and the next request passes' : 'The next request passes'])
  if (k.reset_after > 0) marks.push(['all', k.reset_after, 'The full limit is available'])
  const path = end === 0 ? `M${left} ${y(k.remaining)}H${width - left}`
    : steady ? `M${x(0)} ${y(k.remaining)}L${x(k.reset_after)} ${y(q)}H${width - left}`
      : /^sliding_window_log/.test(algorithm) ? `M${x(0)} ${y(k.remaining)}H${x(k.next_after)}L${x(k.reset_after)} ${y(q)}H${width - left}`
        : `M${x(0)} ${y(k.remaining)}H${x(k.reset_after)}V${y(q)}H${width - left}`
  const words = `${number(k.remaining)} of ${number(q)} left.` + marks.map(([, s, what]) => ` ${what} in ${duration(s)}.`).join('')
  const picture = svg('svg', { class: 'bucket', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': words },
    svg('line', { class: 'full', x1: left, x2: width - left, y1: y(q), y2: y(q) }),
    svg('line', { class: 'base', x1: left, x2: width - left, y1: floor, y2: floor }),
    svg('path', { class: 'water', d: `${path}V${floor}H${left}Z` }),
    svg('path', { class: 'level', d: path }),
    svg('text', { x: left, y: 10 }, `full: ${number(q)}`),
    marks.map(([name, s], i) => [
      svg('line', { class: 'mark ' + name, x1: x(s), x2: x(s), y1: top, y2: floor }),
      svg('text', { class: 'letter', x: Math.min(width - 8, Math.max(8, x(s))), y: floor + 14 + (i && x(s) - x(marks[i - 1][1]) < 14 ? 11 : 0), 'text-anchor': 'middle' }, 'abc'[i]),
    ]),
    svg('circle', { class: 'now', cx: left, cy: y(k.remaining), r: 3.5 }))
  return el('figure', { class: 'moments' }, picture, el('figcaption', {},
    marks.length ? el('dl', {}, marks.map(([, s, what], i) => [el('dt', {}, 'abc'[i]), el('dd', {}, what + (k.slots ? ' at the latest' : '') + ` at ${time(now + s * 1000)}, in ${duration(s)}`)])) : 'The full limit is available.'))
}
