// The one stream of the page. It comes back by itself.

import { begin, second, state } from './state.js'

const again = 1000 // milliseconds until the next attempt

let source, timer, query = ''

// listeners are called after each event, and when the connection comes or goes.
const listeners = []
export const listen = f => listeners.push(f)
const tell = (what, detail) => listeners.forEach(f => f(what, detail))

// open begins the stream, or begins it again for other decisions.
export function open(parameters = {}) {
  const fleet = document.getElementById('fleet-on').checked ? 1 : ''
  query = new URLSearchParams(Object.entries({ rate: 20, fleet, ...parameters }).filter(([, v]) => v !== '')).toString()
  connect()
}

function connect() {
  clearTimeout(timer)
  source?.close()
  const mine = source = new EventSource(new URL('stream?' + query, document.baseURI))
  let begun = null
  mine.addEventListener('start', e => { begun = { what: begin(JSON.parse(e.data)), silent: state.silentSince } })
  mine.addEventListener('second', e => {
    second(JSON.parse(e.data))
    if (begun) {
      Object.assign(state, { connected: true, silentSince: 0 })
      tell('start', begun)
      begun = null
    }
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
