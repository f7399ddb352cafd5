// Menus of less frequent actions.

import { el } from './dom.js'

const isMenu = 'details.menu[open]'

// menu hides less frequent actions behind a button. It closes with Escape, and when the focus leaves it.
export const menu = (label, ...children) => el('details', { class: 'menu' },
  el('summary', { 'aria-label': label }, 'More'), el('div', { class: 'choices' }, children))

// closeMenus closes all menus but one that has an element. The focus stays where a menu was.
export function closeMenus(but) {
  for (const open of document.querySelectorAll(isMenu)) {
    if (but && open.contains(but)) continue
    if (open.contains(document.activeElement)) open.firstChild.focus()
    open.open = false
  }
}
addEventListener('click', e => { if (!e.target.closest?.('dialog')) closeMenus(e.target) })
addEventListener('keydown', e => { if (e.key === 'Escape' && e.target.closest?.(isMenu)) closeMenus() })
addEventListener('focusout', ({ relatedTarget: next }) => { if (next && !next.closest('dialog')) closeMenus(next) })
