// The limit of a key as a picture: what is left now, and when more of it comes back.

import { el, svg } from './dom.js'
import { duration, number } from './text.js'
import { until } from './why.js'

const width = 320, height = 120, left = 8, right = width - left, top = 14, floor = 92

// bucket draws the state of a key. How the quota comes back depends on the algorithm.
export function bucket(k) {
  const q = k.quota, end = Math.max(k.reset_after, k.retry_after ?? 0), algorithm = k.limit.split(' ')[0]
  const steady = /bucket|gcra|counter/.test(algorithm) && !/refill interval/.test(k.limit)
  const x = s => left + (end ? s / end : 0) * (right - left)
  const y = n => floor - Math.min(1, Math.max(0, n) / Math.max(1, q)) * (floor - top)
  const next = k.ban ? 'The ban ends, and the next request passes' : 'The next request passes'
  const marks = [
    k.next_after > 0 && !k.slots && k.next_after !== k.retry_after && ['more', k.next_after, 'More is available'],
    k.retry_after > 0 && !(k.ban && !k.ban.ends_in) && ['next', k.retry_after, next],
    k.reset_after > 0 && ['all', k.reset_after, 'The full limit is available'],
  ].filter(Boolean)
  const comes = steady ? `L${x(k.reset_after)} ${y(q)}`
    : algorithm === 'sliding_window_log' ? `H${x(k.next_after)}L${x(k.reset_after)} ${y(q)}`
      : `H${x(k.reset_after)}V${y(q)}`
  const path = `M${left} ${y(k.remaining)}${end === 0 ? '' : comes}H${right}`
  const words = `${number(k.remaining)} of ${number(q)} left.` +
    marks.map(([, s, what]) => ` ${what} in ${duration(s)}.`).join('')
  const line = (name, x1, x2, y1, y2) => svg('line', { class: name, x1, x2, y1, y2 })
  const letter = (s, i) => svg('text', {
    class: 'letter', x: Math.min(width - 8, Math.max(8, x(s))), 'text-anchor': 'middle',
    y: floor + 14 + (i && x(s) - x(marks[i - 1][1]) < 14 ? 11 : 0),
  }, 'abc'[i])
  const picture = svg('svg', { class: 'bucket', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': words },
    line('full', left, right, y(q), y(q)), line('base', left, right, floor, floor),
    svg('path', { class: 'water', d: `${path}V${floor}H${left}Z` }), svg('path', { class: 'level', d: path }),
    svg('text', { x: left, y: 10 }, `full: ${number(q)}`),
    marks.map(([name, s], i) => [line('mark ' + name, x(s), x(s), top, floor), letter(s, i)]),
    svg('circle', { class: 'now', cx: left, cy: y(k.remaining), r: 3.5 }))
  const moment = ([, s, what], i) => [el('dt', {}, 'abc'[i]),
    el('dd', {}, what, k.slots ? ' at the latest at ' : ' at ', until(Date.now() + s * 1000))]
  return el('figure', { class: 'moments' }, picture,
    el('figcaption', {}, marks.length ? el('dl', {}, marks.map(moment)) : 'The full limit is available.'))
}
