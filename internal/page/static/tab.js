// The title and the icon of the tab, which show that somebody is refused, or that something is wrong.

import { byId } from './dom.js'
import { number } from './text.js'

const name = 'Rate limits'
const colors = { good: '%230b57d0', warn: '%23b3261e', bad: '%23b3261e', '': '%2359636e' }
const calm = byId('icon').href

// showInTab shows how it is, in words and in the icon.
export function showInTab(kind, refused) {
  const title = kind === 'bad' ? `No answer – ${name}` : refused ? `${number(refused)} refused – ${name}` : name
  if (document.title !== title) document.title = title
  const mark = kind === 'good' ? '' : "%3Ccircle cx='24' cy='8' r='7' fill='white'/%3E%3Ccircle cx='24' cy='8' r='5' fill='" + (kind === 'bad' ? 'black' : '%23e8710a') + "'/%3E"
  const icon = calm.replace(colors.good, colors[kind] ?? colors['']).replace('%3C/svg%3E', mark + '%3C/svg%3E')
  if (byId('icon').href !== icon) byId('icon').href = icon
}
