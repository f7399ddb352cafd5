// What a zone with algorithm adaptive does: its limit, what runs and waits, how long, and the keys that have the slots.

import { call, zonePath } from './api.js'
import { chart } from './chart.js'
import { el, setText, show } from './dom.js'
import { showKey } from './key.js'
import { sum } from './state.js'
import { count, duration, number, plain, share, time, visible } from './text.js'

// slotsPanel returns the part of a zone's panel about its slots, and what draws it.
export function slotsPanel(z) {
  const sentence = el('p', { class: 'slots' }), plot = el('div', { class: 'plot' }), latency = el('div', { class: 'plot' }), classes = el('div', { class: 'slot-classes' }), top = el('div', { class: 'slot-keys' })
  const parts = [
    el('div', { class: 'wide' }, el('h3', {}, 'Requests in the upstream, and those that wait'), sentence, plot),
    el('div', { class: 'wide' }, el('h3', {}, 'How long useful requests have their slots'), latency),
    z.adaptive.classes ? el('div', {}, el('h3', {}, 'Shares of the classes'), classes) : null,
    el('div', {}, el('h3', {}, 'Keys with the most time of slots'), top),
  ]
  let drawings = []
  let past = []
  return {
    parts,
    begin() {
      drawings = [
        chart(plot, [{ label: 'limit', bound: true }, { label: 'running' }, { label: 'waiting', refused: true }], 'Limit, running and waiting requests in zone ' + plain(z.name), { show: number }),
        chart(latency, [{ label: 'mean' }], 'Time of a slot in zone ' + plain(z.name), { height: 100, show: v => duration(v / 1000), from: 3 }),
      ]
    },
    update(z) {
      drawings.forEach(d => d.draw(z.slot_history))
      setText(sentence, inWords(z.adaptive))
      past = [...past.slice(-60), z.adaptive.classes]
      if (z.adaptive.classes) drawClasses(classes, past[0], z.adaptive.classes)
    },
    async ask() {
      const answer = await call('GET', zonePath(z, '/top') + '?n=8&by=slot_time'), most = answer.keys[0]?.slot_ms
      show(top, answer.keys.length ? el('table', { class: 'top' }, el('thead', {}, el('tr', {}, ['Key', 'Time of slots', 'Requests'].map(t => el('th', { scope: 'col' }, t)))),
        el('tbody', {}, answer.keys.map(k => {
          const fill = el('span', { class: 'fill' })
          fill.style.width = (k.slot_ms ?? 0) / most * 100 + '%'
          return el('tr', {}, el('td', {}, showKey(k, z), el('span', { class: 'track', 'aria-hidden': 'true' }, fill)), el('td', {}, duration((k.slot_ms ?? 0) / 1000)), el('td', {}, number(k.requests)))
        }))) : el('p', { class: 'empty' }, 'No request had a slot in the last few minutes.'))
    },
    end: () => drawings.forEach(d => d.end()),
  }
}

const trends = { 'goes up': 'The limit goes up: more requests bring more answers.', 'goes down': 'The limit goes down: fewer requests bring as many answers.', rests: 'The limit rests.' }

// inWords says what the zone does now.
function inWords(a) {
  const now = `${number(a.running)} of ${count(a.limit, 'request')} ${a.running === 1 ? 'runs' : 'run'}. `
  if (!a.waiting) return now + 'Nothing waits.'
  return `${now}${number(a.waiting)} ${a.waiting === 1 ? 'waits' : 'wait'}: the upstream is the bottleneck since ${time(Date.parse(a.since))}. ${trends[a.trend] ?? ''}`
}

// drawClasses shows which part of the time of slots each class had in the last minute.
function drawClasses(at, before, now) {
  const taken = now.map((c, i) => c.slot_seconds - (before?.[i]?.slot_seconds ?? 0)), all = sum(taken)
  show(at, el('table', { class: 'top' }, el('thead', {}, el('tr', {}, ['Class', 'Share', 'Running', 'Waiting'].map(t => el('th', { scope: 'col' }, t)))),
    el('tbody', {}, now.map((c, i) => {
      const fill = el('span', { class: 'fill' })
      fill.style.width = (all ? taken[i] / all * 100 : 0) + '%'
      return el('tr', {}, el('td', {}, visible(c.class, 30), el('span', { class: 'track', 'aria-hidden': 'true' }, fill)), el('td', {}, share(taken[i], all)), el('td', {}, number(c.running)), el('td', {}, number(c.waiting)))
    }))))
}
