// The plans of a zone: what each gives, and how many of the most frequent keys have it.

import { el, pill, show } from './dom.js'
import { count, limitInWords, number, share, visible } from './text.js'

export const asked = 500 // keys whose plans are counted

// drawPlans draws the plans with the keys that are the most frequent ones. A key has the plan of its last request that
// had one.
export function drawPlans(at, plans, { keys, unlisted }) {
  const rows = new Map(plans.map(p => [p.plan, { ...p, keys: 0, requests: 0, refused: 0 }]))
  for (const k of keys) {
    const plan = k.plan ?? ''
    if (!rows.has(plan)) rows.set(plan, { plan, unknown: true, keys: 0, requests: 0, refused: 0 })
    const row = rows.get(plan)
    row.keys++
    row.requests += k.requests
    row.refused += k.refused + (k.dry_run ?? 0)
  }
  const all = [...rows.values()], most = Math.max(1, ...all.map(r => r.keys))
  const heads = ['Plan', 'Gives', 'Keys', 'Requests', 'Share refused'].map((t, i) => el('th', { scope: 'col', class: i > 1 ? 'number' : null }, t))
  show(at, el('table', { class: 'plans' }, el('thead', {}, el('tr', {}, heads)), el('tbody', {}, all.map(r => {
    const fill = el('span', { class: 'fill' })
    fill.style.width = r.keys / most * 100 + '%'
    return el('tr', {},
      el('th', { scope: 'row' }, r.plan ? visible(r.plan, 30) : 'no plan', r.default ? [' ', pill('default')] : null),
      el('td', {}, gives(r)),
      el('td', { class: 'number' }, number(r.keys), el('span', { class: 'track', 'aria-hidden': 'true' }, fill)),
      el('td', { class: 'number' }, number(r.requests)),
      el('td', { class: 'number' }, share(r.refused, r.requests)))
  }))), el('p', { class: 'note' }, keys.length < asked && !unlisted ? `${count(keys.length, 'key')} of the last few minutes.` : `Of the ${count(keys.length, 'most frequent key')} of the last few minutes.`))
}

const few = 4 // plans that the row of a zone names

// plansInWords returns the plans of a zone for people, and what else there is to say.
export const plansInWords = plans => [
  plans.slice(0, few).map((p, i) => [i ? ', ' : '', visible(p.plan || 'others', 30), ' ', p.limit ? limitInWords(p.limit)[0] : 'without limit']),
  plans.length > few ? `and ${count(plans.length - few, 'more plan')}` : 'by plan',
]

function gives(r) {
  if (r.unknown) return r.plan ? 'a plan of another config' : 'rejected, or the plan is not known'
  if (!r.limit) return 'no limit'
  const [limit, how] = limitInWords(r.limit)
  return [limit, el('span', { class: 'how' }, how), r.varies ? el('span', { class: 'how' }, 'depends on the request') : null]
}
