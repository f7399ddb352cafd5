// The order of the zones, and how many of them are shown.

import { byId, el, place, setText } from './dom.js'
import { countsOf, state } from './state.js'
import { count } from './text.js'

const few = 12 // zones that are shown until all are asked for
const pause = 5 // events between two looks at the order, so that rows do not jump

const refusedLately = z => countsOf(z.history, 60)[1]
const real = z => z.rollout ? 0 : refusedLately(z)
const shareOf = z => { const [all, no] = countsOf(z.history); return all ? no / all : 0 }

// orders are what the table can be sorted by, the largest first. The first one is that of a page just opened.
const orders = {
  refusing: (a, b) => real(b) - real(a) || refusedLately(b) - refusedLately(a),
  name: () => 0,
  requests: (a, b) => b.rates.all - a.rates.all,
  refused: (a, b) => countsOf(b.history)[1] - countsOf(a.history)[1],
  share: (a, b) => shareOf(b) - shareOf(a),
  keys: (a, b) => (b.keys ?? 0) - (a.keys ?? 0),
}

let by = 'refusing', all = false, turn = 0

// heads returns the head of the table. Draw is called when another order was chosen.
export function heads(columns, draw) {
  const cells = columns.map(([text, order], i) => el('th', { scope: 'col', class: 'c' + i, 'data-order': order ?? null }, order ? el('button', {
    type: 'button', class: 'sort', click() {
      by = by === order ? 'refusing' : order
      mark()
      draw()
    },
  }, text) : text))
  const mark = () => cells.forEach(c => {
    if (c.dataset.order === by) c.setAttribute('aria-sort', by === 'name' ? 'ascending' : 'descending')
    else c.removeAttribute('aria-sort')
  })
  mark()
  return el('thead', {}, el('tr', {}, cells))
}

// due reports whether it is time to look at the order again: not while somebody is about to use a row.
export function due(table) {
  return ++turn % pause === 1 && !table.matches(':hover') && !table.contains(document.activeElement)
}

// arrange puts the rows of zones in order, and hides those beyond the first few. A row that is open, or whose name has
// the text that is looked for, is not hidden.
export function arrange(table, rows, text) {
  const sorted = [...state.zones].filter(z => rows.has(z.name)).sort((a, b) => orders[by](a, b) || a.index - b.index).map(z => rows.get(z.name))
  const found = sorted.filter(r => r.name.toLowerCase().includes(text))
  const isShown = new Set(all || text ? found : [...found.slice(0, few), ...found.filter(r => r.open)])
  place(table, [table.querySelector('thead'), ...sorted.map(r => r.body)])
  for (const r of sorted) r.body.hidden = !isShown.has(r)
  const button = byId('zones-all')
  button.hidden = Boolean(text) || found.length <= few
  setText(button, all ? 'Show fewer' : `Show all ${count(found.length, 'zone')}`)
}

// onAll calls draw when all zones were asked for, or no longer.
export function onAll(draw) {
  byId('zones-all').addEventListener('click', () => {
    all = !all
    draw()
  })
}
