// Makes elements. Text becomes text nodes, and never markup.

const svgSpace = 'http://www.w3.org/2000/svg'

// el makes an element: attributes by name, listeners as functions, and children.
export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children)
}

// svg makes an element of a picture.
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(svgSpace, tag), attributes, children)
}

function fill(e, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === 'function') e.addEventListener(name, value)
    else if (value === true) e.setAttribute(name, '')
    else if (value !== false && value != null) e.setAttribute(name, value)
  }
  e.append(...children.flat(Infinity).filter(c => c != null && c !== false))
  return e
}

export const byId = id => document.getElementById(id)

// setText changes a text only where it differs, so that nothing is drawn or read out again.
export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text
}

// show replaces the children of an element.
export function show(e, ...children) {
  e.replaceChildren(...children.flat(Infinity).filter(c => c != null && c !== false))
}

// pill is a short word with a color. The word alone says all.
export const pill = (text, kind) => el('span', { class: 'pill ' + (kind ?? '') }, text)

// place puts children into an element in this order, and moves only those that are elsewhere: what is moved loses the
// focus.
export function place(e, list) {
  for (const child of [...e.children]) if (!list.includes(child)) child.remove()
  list.forEach((child, i) => { if (e.children[i] !== child) e.insertBefore(child, e.children[i] ?? null) })
}

// menu hides less frequent actions behind a button. It closes with Escape, and when the focus leaves it.
export function menu(label, ...children) {
  const all = el('details', { class: 'menu' }, el('summary', { 'aria-label': label }, 'More'), el('div', { class: 'choices' }, children))
  all.addEventListener('keydown', e => { if (e.key === 'Escape') closeMenus() })
  all.addEventListener('focusout', e => { if (e.relatedTarget && !all.contains(e.relatedTarget) && !e.relatedTarget.closest('dialog')) all.open = false })
  return all
}

// closeMenus closes all menus but one that has an element. The focus stays where a menu was.
export function closeMenus(but) {
  for (const open of document.querySelectorAll('details.menu[open]')) {
    if (but && open.contains(but)) continue
    if (open.contains(document.activeElement)) open.firstChild.focus()
    open.open = false
  }
}
addEventListener('click', e => closeMenus(e.target))
