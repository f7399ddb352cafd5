// The one stream of the page. It comes back by itself.

import { wholeFleet } from './fleet.js'
import { begin, second, state } from './state.js'

const again = 1000 // milliseconds until the next attempt

let source, timer, query = ''

// listeners are called after each event, and when the connection comes or goes.
const listeners = []
export const listen = f => listeners.push(f)
const tell = (what, detail) => listeners.forEach(f => f(what, detail))

// open begins the stream, or begins it again for other decisions.
export function open(parameters = {}) {
  query = new URLSearchParams(Object.entries({ rate: 20, fleet: wholeFleet() ? 1 : '', ...parameters }).filter(([, v]) => v !== '')).toString()
  connect()
}

function connect() {
  clearTimeout(timer)
  source?.close()
  const mine = source = new EventSource(new URL('stream?' + query, document.baseURI))
  mine.addEventListener('start', e => {
    const what = begin(JSON.parse(e.data))
    const silent = state.silentSince
    Object.assign(state, { connected: true, silentSince: 0 })
    tell('start', { what, silent })
  })
  mine.addEventListener('second', e => {
    second(JSON.parse(e.data))
    tell('second')
  })
  mine.addEventListener('error', () => {
    if (mine !== source) return
    mine.close()
    if (state.connected || !state.silentSince) Object.assign(state, { connected: false, silentSince: Date.now() })
    tell('lost')
    timer = setTimeout(connect, again)
  })
}
