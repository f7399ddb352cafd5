// What can be done to a key: each with a confirmation, and the command that does the same.

import { call, zonePath } from './api.js'
import { button, byId, copy, el, refocus, setText, show } from './dom.js'
import { nameKey, queryOf, showKey } from './key.js'
import { closeMenus } from './menu.js'
import { news } from './news.js'
import { command, word } from './shell.js'
import { noteDone, state, zoneNamed } from './state.js'
import { count, moments, plain, time, visible } from './text.js'

const needsOverrides = z => z.overrides ? '' : 'This zone has no overrides: add the option overrides to it.'

// actions are what can be done, by name. Fields are asked for. The body of the request has them beside what is written there.
const actions = {
  reset: {
    label: 'Let through', title: 'Let this key through now?', yes: 'Let it through', done: 'Let through',
      mark: 'let through',
    text: 'Forgets what the key has used, its refusals, and a ban by the zone. It starts again with its full limit.',
    cannot: () => '', command: 'reset', request: ['DELETE', '/key'],
  },
  raise: {
    label: 'Raise', title: 'Give this key a limit of its own?', yes: 'Raise the limit', done: 'Raised', mark: 'raised',
    text: 'Replaces any other override of the key. What it has used so far still counts.',
    cannot: needsOverrides, fields: ['limit', 'for', 'note'], for: '2h', command: 'set',
      request: ['PUT', '/key/override', {}],
  },
  exempt: {
    label: 'Exempt', title: 'Exempt this key?', yes: 'Exempt it', done: 'Exempted', mark: 'exempted',
    text: 'The zone no longer limits the key, and does not ban it. Replaces any other override of the key.',
      flags: ['--exempt'],
    cannot: needsOverrides, fields: ['for', 'note'], for: '', command: 'set',
      request: ['PUT', '/key/override', { limit: 'exempt' }],
  },
  ban: {
    label: 'Ban', title: 'Ban this key?', yes: 'Ban it', done: 'Banned', danger: true,
    text: 'The zone refuses all requests of the key. Replaces any other override of the key.',
    cannot: needsOverrides, fields: ['for', 'note'], for: '1h', command: 'ban', request: ['PUT', '/key/ban', {}],
  },
  unban: {
    label: 'Unban', title: 'End the ban of this key?', yes: 'End the ban', done: 'Unbanned', mark: 'unbanned',
    text: 'Ends a ban by an operator or by the zone, and forgets refusals. What the key has used so far still counts, so its ' +
      'limit may still refuse it.',
    cannot: z => z.overrides || z.bans ? '' : 'This zone has neither overrides nor bans.', command: 'unban',
      request: ['DELETE', '/key/ban'],
  },
  clear: {
    label: 'Clear', title: 'Clear the override of this key?', yes: 'Clear it', done: 'Cleared the override of',
    text: 'From the next request on, the key has the limit of the zone again.', flags: ['--clear'],
    cannot: needsOverrides, command: 'set', request: ['DELETE', '/key/override'],
  },
}

// after is called when something has been done.
const after = []
export const onDone = f => after.push(f)

function reasonAgainst(action, z, k) {
  if (k.key_truncated) return 'Only the beginning of this key is known, so it cannot be named.'
  if (k.unknown) return 'The store keeps only a hash of this key, so it cannot be named.'
  return action.cannot(z)
}

// act returns a button for an action on a key in one zone or in several.
export function act(name, targets) {
  const action = actions[name], { z, k } = targets[0]
  const why = targets.map(t => reasonAgainst(action, t.z, t.k)).find(Boolean)
  const what = `${nameKey(k, z)} in ${targets.length > 1 ? count(targets.length, 'zone') : 'zone ' + plain(z.name, 40)}`
  return button(action.label + (k.network ? ' the network' : ''),
    () => why ? news(why) : ask({ name, targets, what }), {
    class: action.danger ? 'danger' : '', 'aria-disabled': why ? 'true' : null, title: why || null,
    'aria-label': `${action.label}: ${what}${why ? '. ' + why : ''}`,
  })
}

// acts returns buttons for actions on a key.
export const acts = (names, z, k) =>
  el('div', { class: 'actions', role: 'group', 'aria-label': 'Actions for ' + nameKey(k, z) },
    names.map(name => act(name, [{ z, k }])))

let current = null // what the dialog asks for

const inputs = ['limit', 'for', 'note'].map(field => byId('field-' + field))
byId('dialog-form').addEventListener('input', drawCommand)

// written returns what is written in the fields that the dialog has now.
const written = () => Object.fromEntries(inputs.filter(i => !i.disabled && i.value).map(i => [i.name, i.value]))

// drawCommand shows the command that does the same.
function drawCommand() {
  const action = actions[current.name], { limit = '', for: length, note } = written()
  const flags = [...length ? ['--for', length] : [], ...note ? ['--note', word(note)] : [], ...action.flags ?? []]
  const lines = current.targets.map(({ z, k }) =>
    command(state.start.address, action.command, z, k, flags, current.name === 'raise' ? [limit] : []))
  setText(byId('dialog-command'), lines.join('\n'))
}

// ask opens the dialog for an action on a key, in one zone or in several.
function ask({ name, targets, what }) {
  const action = actions[name], { z, k } = targets[0], thing = k.network ? 'network' : 'key'
  setText(byId('dialog-title'), action.title.replace('this key', 'this ' + thing))
  byId('dialog-text').replaceChildren()
  show(byId('dialog-text'), showKey(k, z), targets.length > 1 ? ' in zones ' : ' in zone ',
    targets.map((t, i) => [i ? ', ' : '', visible(t.z.name, 48)]), '. ', action.text.replaceAll('the key', 'the ' + thing))
  const usual = { limit: z.events ? 2 * z.events : '', for: action.for ?? '', note: '' }
  for (const input of inputs) {
    input.disabled = input.parentNode.hidden = !action.fields?.includes(input.name)
    input.value = usual[input.name]
  }
  setText(byId('for-ever'), name === 'ban' ? 'until it is unbanned' : 'until it is cleared')
  setText(byId('dialog-error'), '')
  setText(byId('dialog-yes'), action.yes)
  byId('dialog-yes').classList.toggle('danger', Boolean(action.danger))
  byId('dialog-yes').disabled = false
  const from = document.activeElement
  const giveBack = () => document.activeElement === document.body && refocus(from, from.closest('section'))
  current = { name, targets, what, giveBack }
  drawCommand()
  byId('dialog').showModal()
}

// end closes the dialog, and the menu from which it was opened. The event close comes with a later frame, when another
// menu or dialog may be open, so that it counts only if the browser has closed the dialog by itself.
function end() {
  byId('dialog').close()
  current?.giveBack() // what had the focus may be gone
  if (current) closeMenus()
  current = null
}
byId('dialog-no').addEventListener('click', end)
byId('dialog').addEventListener('cancel', e => {
  e.preventDefault()
  end()
})
byId('dialog').addEventListener('close', () => { if (!byId('dialog').open) end() })
byId('dialog-copy').addEventListener('click', async () => {
  const done = await copy(byId('dialog-command').textContent)
  if (!done) getSelection().selectAllChildren(byId('dialog-command'))
  setText(byId('dialog-copy'), done ? 'Copied' : 'Selected: copy it')
  setTimeout(() => setText(byId('dialog-copy'), 'Copy the command'), 2000)
})

byId('dialog-form').addEventListener('submit', async e => {
  e.preventDefault()
  const doing = current
  if (!doing) return
  byId('dialog-yes').disabled = true
  try {
    await carryOut(doing, () => { if (current === doing) end() })
  } catch (error) {
    if (current !== doing) return
    setText(byId('dialog-error'), plain(error.message, 400))
    byId('dialog-yes').disabled = false
  }
})

// carryOut does what was confirmed, in one zone after the other.
async function carryOut({ name, targets, what }, done) {
  const action = actions[name], [method, path, rule] = action.request, body = rule && { ...rule, ...written() }
  let warning = '', changed = false
  for (const { z, k } of targets) {
    const answer = await call(method, zonePath(z, path) + queryOf(k), body)
    if (answer?.warning) warning = ' Warning: ' + answer.warning.replace(moments, at => time(at))
    if (answer?.unchanged && name !== 'reset') continue // a key that has used nothing is let through, too
    changed = true
    noteDone(zoneNamed(z.name) ?? z, k, action.mark)
  }
  done()
  news(`${changed ? action.done : 'Nothing has changed for'} ${what}.${warning}`)
  after.forEach(f => f())
}
