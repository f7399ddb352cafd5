// The switch between this instance and the whole fleet, and the instances of the fleet.

import { titled } from './commands.js'
import { byId, el, pill, setText, show } from './dom.js'
import { state } from './state.js'
import { count, duration, number, visible } from './text.js'

const words = { here: 'this one', reports: 'reports', silent: 'silent', left: 'has left', mute: 'does not report', unknown: 'not known, because the store does not answer in time' }

let drawn = '' // the instances that are shown

export const wholeFleet = () => byId('fleet-on').checked

// updateFleet shows the switch if there are others, and the instances if it is on.
export function updateFleet() {
  const several = state.stores.some(s => s.now?.instances > 1)
  byId('fleet').hidden = !several && !wholeFleet()
  const all = wholeFleet() ? state.instances : []
  const counted = !wholeFleet() ? 'All counts are for this instance only.' : `Counts are of ${count(all.length, 'instance')}; those of others are up to two seconds old.`
  setText(byId('counted'), counted)
  const now = JSON.stringify(all)
  if (now === drawn) return
  drawn = now
  if (!all.length) return show(byId('instances'))
  show(byId('instances'), titled('Instances', 'instances'), el('ul', { class: 'instances' }, all.map(i => el('li', {},
    visible(i.name, 60), ' ', pill(words[i.state] ?? i.state, i.state === 'here' || i.state === 'reports' ? 'good' : 'bad'),
    ` ${number(Math.round(i.share * 100))} % of the requests`,
    i.state === 'silent' || i.state === 'left' ? `, last report ${duration(i.age)} ago` : '',
    i.differs?.length ? `, another config: ${i.differs.slice(0, 5).map(z => visible(z, 40)).join(', ')}` : ''))))
}
