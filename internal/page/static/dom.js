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
