// Time series of up to 15 minutes, drawn by uPlot.

import { shown } from './state.js'
import { minute, rate } from './text.js'

const uPlot = window.uPlot
const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
const dark = matchMedia('(prefers-color-scheme: dark)')

// chart returns a drawing in an element. A series that counts refusals is dashed, to be told apart without color, too.
export function chart(at, series, label, { height = 150, show = rate } = {}) {
  let plot = null, last = null
  const axis = { stroke: () => color('--muted'), grid: { stroke: () => color('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' }
  const make = () => {
    plot?.destroy()
    plot = new uPlot({
      width: Math.max(200, at.clientWidth), height, cursor: { show: false }, legend: { live: false, markers: { dash: (_, i) => series[i - 1]?.refused ? 'dashed' : 'solid' } },
      scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
      axes: [{ ...axis, space: 60, incrs: [60, 120, 300], values: (_, all) => all.map(s => minute(s * 1000)) }, { ...axis, size: 46, space: 36, values: (_, all) => all.map(v => show(v)) }],
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
    plot.setData([history.times, ...history.values.slice(0, series.length)], false)
    plot.setScale('x', { min: end - shown(history), max: end })
  }
  const sized = new ResizeObserver(() => plot && plot.setSize({ width: Math.max(200, at.clientWidth), height }))
  make()
  sized.observe(at)
  dark.addEventListener('change', make)
  return { draw, end() { sized.disconnect(); dark.removeEventListener('change', make); plot.destroy() } }
}
