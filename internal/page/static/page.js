// Brings the stream and the views together.

import { call } from './api.js'
import { drawFilters, follow, redraw, updateDecisions } from './decisions.js'
import { offerCommands } from './commands.js'
import { byId, setText, show } from './dom.js'
import { follow as find } from './find.js'
import { updateFleet } from './fleet.js'
import { startNetworks, updateNetworks } from './networks.js'
import { news } from './news.js'
import { updateOutage } from './outage.js'
import { drawRefused, nowSpan, refusedSentence, refusing, updateRefused } from './refused.js'
import { startRules } from './rules.js'
import { drawStores, storeSentence, updateStores } from './stores.js'
import { state } from './state.js'
import { listen, open } from './stream.js'
import { showInTab } from './tab.js'
import { count, plain, time } from './text.js'
import { drawForm } from './why.js'
import { drawZones, updateZones } from './zones.js'

let since = 0 // when the first of the clients that are refused now was refused
let quiet = 0 // since when the page has seen that nobody is refused, so that it knows since when somebody is
let drawing = false // zones and decisions wait for their frame
let asked = false // why the stream does not come

function summary(all) {
  const level = byId('level'), sentence = byId('sentence')
  const set = (word, kind, refused = 0) => {
    showInTab(kind, refused)
    if (level.textContent !== word) { setText(level, word); level.className = 'level ' + kind }
  }
  if (!state.connected) {
    set('No answer', 'bad')
    return
  }
  const now = all.some(c => c.keys.some(r => r.isNow && r.count > 0))
  if (!now) [since, quiet] = [0, quiet || state.now]
  else if (quiet) [since, quiet] = [state.now - quiet > nowSpan ? state.now : 0, 0]
  const [stores, bad] = storeSentence(), [refused, n] = refusedSentence(all, since)
  const zones = `${count(state.zones.length, 'zone')}. `
  show(sentence, zones, ...stores, state.zones.length ? refused : state.adaptive.length ? '' : 'This Caddy limits nothing.')
  if (!state.zones.length) return set('No limits', '')
  set(bad ? 'Trouble' : n ? 'Refusing' : 'Calm', bad ? 'bad' : n ? 'warn' : 'good', n)
}

function start({ what, silent }) {
  asked = false
  setText(byId('caddy'), `${plain(state.start.caddy, 60)}, since ${time(state.start.since)}`)
  setText(byId('link'), 'live')
  byId('link').className = 'pill good'
  drawZones()
  drawRefused()
  drawStores()
  drawForm()
  drawFilters()
  redraw()
  startRules()
  offerCommands()
  startNetworks()
  document.body.classList.add('ready')
  if (what === 'new') find()
  if (what === 'restarted') news('Caddy was restarted: the counts on this page start from zero.')
  else if (what === 'reloaded' && silent) news(`Connected again${silent < Date.now() - 3000 ? ': Caddy had not answered since ' + time(silent) : ': the config was reloaded'}.`)
  if (what !== 'new') {
    quiet = 0
    since = 0
  }
}

function lost() {
  setText(byId('link'), 'connecting')
  byId('link').className = 'pill bad'
  summary([])
  setText(byId('sentence'), `Caddy has not answered since ${time(state.silentSince)}. This page tries again every second.`)
  if (asked || state.silentSince > Date.now() - 2500) return
  asked = true // the stream does not say why
  call('GET', 'page/').catch(e => { if (!state.connected) show(byId('sentence'), byId('sentence').textContent, ' ', plain(e.message, 300), '.') })
}

listen((what, detail) => {
  if (what === 'start') return start(detail)
  if (what === 'lost') return lost()
  const all = refusing()
  summary(all)
  updateRefused(all)
  updateStores()
  updateOutage()
  updateNetworks()
  updateFleet()
  if (document.hidden || drawing) return
  drawing = true
  // After two frames: one draws what is above, the next one the rows that came to the screen by that. So no frame has all of it.
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(draw)))
})

function draw() {
  drawing = false
  if (!state.connected) return
  updateZones()
  updateDecisions()
}
document.addEventListener('visibilitychange', () => { if (!document.hidden && state.start) redraw() })
byId('fleet-on').addEventListener('change', () => {
  state.instances = []
  follow()
})

open()
