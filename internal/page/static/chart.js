// Time series of five minutes, drawn by uPlot.

import { span } from './state.js'
import { rate } from './text.js'

const uPlot = window.uPlot
const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
const dark = matchMedia('(prefers-color-scheme: dark)')

// chart returns a drawing in an element. A series that counts refusals is dashed, to be told apart
// without color, too.
export function chart(at, series, label, height = 150, show = rate) {
  let plot = null, last = null
  const axis = { stroke: () => color('--muted'), grid: { stroke: () => color('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' }
  const make = () => {
    plot?.destroy()
    plot = new uPlot({
      width: Math.max(200, at.clientWidth), height, cursor: { y: false, drag: { x: false, y: false } }, legend: { live: true },
      scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
      axes: [{ ...axis, space: 70 }, { ...axis, size: 46, space: 36, values: (_, all) => all.map(v => show(v)) }],
      series: [{}, ...series.map(s => ({
        label: s.label, stroke: () => color(s.refused ? '--refused' : '--accent'), width: 1.5, dash: s.refused ? [5, 3] : [], points: { show: false }, spanGaps: true,
        value: (_, v) => v == null ? '–' : show(v),
      }))],
    }, [[], ...series.map(() => [])], at)
    plot.root.setAttribute('role', 'img')
    plot.root.setAttribute('aria-label', label)
    if (last) draw(last)
  }
  const draw = history => {
    last = history
    if (!plot || !history.times.length) return
    const end = history.times.at(-1)
    plot.setData([history.times, ...history.values], false)
    plot.setScale('x', { min: end - span, max: end })
  }
  const sized = new ResizeObserver(() => plot && plot.setSize({ width: Math.max(200, at.clientWidth), height }))
  make()
  sized.observe(at)
  dark.addEventListener('change', make)
  return { draw, end() { sized.disconnect(); dark.removeEventListener('change', make); plot.destroy() } }
}
