// Brings the stream and the panels together.

import { call } from './api.js'
import { drawDecisions, drawFilters, follow } from './decisions.js'
import { byId, setText, show } from './dom.js'
import { news, showInTab } from './news.js'
import { drawRefused, forget, refusedSentence, refusing } from './refused.js'
import { startRules } from './rules.js'
import { terminal } from './shell.js'
import { drawStores, storeSentence } from './stores.js'
import { state } from './state.js'
import { listen, open } from './stream.js'
import { count, plain, time } from './text.js'
import { drawForm, follow as find } from './why.js'
import { updateZones } from './zones.js'

let asked = false // why the stream does not come

// level says in a word how it is, also in the tab.
function level(word, kind, refused = 0) {
  showInTab(kind, refused)
  setText(byId('level'), word)
  byId('level').className = 'level ' + kind
}

function summary(all) {
  const [stores, bad] = storeSentence(), [refused, n] = refusedSentence(all), limits = state.zones.length
  show(byId('sentence'), `${count(limits, 'zone')}. `, stores,
    limits ? refused : state.adaptive.length ? '' : 'This Caddy limits nothing.')
  if (!limits) level('No limits', '')
  else if (bad) level('Trouble', 'bad', n)
  else level(n ? 'Refusing' : 'Calm', n ? 'warn' : 'good', n)
}

function link(text, kind) {
  setText(byId('link'), text)
  byId('link').className = 'pill ' + kind
}

const commands = {
  refused: ['top', ['--refused']], zones: ['zones'], stores: ['stores'], decisions: ['watch'], rules: ['overrides'],
}

function start({ what, silent }) {
  asked = false
  setText(byId('caddy'), `${plain(state.start.caddy, 60)}, since ${time(state.start.since)}`)
  link('live', 'good')
  drawForm()
  drawFilters()
  startRules()
  for (const [id, of] of Object.entries(commands)) show(document.querySelector(`#${id} .same`), terminal(...of))
  document.body.classList.add('ready')
  if (what === 'new') return find()
  forget()
  if (what === 'restarted') news('Caddy was restarted: the counts on this page start from zero.')
  else if (silent) news(`Connected again${silent < Date.now() - 3000 ? ': Caddy had not answered since ' + time(silent) : ': the config was reloaded'}.`)
}

function lost() {
  link('connecting', 'bad')
  level('No answer', 'bad')
  setText(byId('sentence'), `Caddy has not answered since ${time(state.silentSince)}. This page tries again every second.`)
  if (asked || state.silentSince > Date.now() - 2500) return
  asked = true // the stream does not say why
  call('GET', 'page/').catch(e => {
    if (!state.connected) show(byId('sentence'), byId('sentence').textContent, ' ', plain(e.message, 300), '.')
  })
}

function draw() {
  const all = refusing()
  summary(all)
  drawStores()
  if (document.hidden) return
  drawRefused(all)
  updateZones()
  drawDecisions()
}

listen((what, detail) => {
  if (what === 'start') start(detail)
  else if (what === 'lost') lost()
  else draw()
})
document.addEventListener('visibilitychange', () => { if (!document.hidden && state.connected) draw() })
byId('fleet-on').addEventListener('change', follow)

open()
