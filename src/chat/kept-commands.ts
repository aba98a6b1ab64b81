import { UsageError } from '../errors/user-errors.js';
import { plainLine } from '../terminal/plain-text.js';
import { loadChat, type SavedChat, saveChat } from './chat-file.js';
import type { ChatCommand, ChatState, Say } from './chat-state.js';
import { type KeptChats, keptLines } from './kept-chats.js';

/** Most chats that /chats lists. */
const MAX_LISTED = 20;
const MAX_SHOWN = 400;

/** Commands for conversations in files: those that are kept by themselves, and those of names that the user gives. */
export const KEPT_COMMANDS: readonly ChatCommand[] = [
  {
    name: 'chats',
    argument: '',
    help: 'list the newest conversations that are kept',
    run: (state, _, say) => {
      const chats = keptOf(state).list(MAX_LISTED);
      for (const line of chats.length === 0 ? ['no chats are kept yet'] : keptLines(chats)) say(line);
      return undefined;
    },
  },
  {
    name: 'resume',
    argument: '[ID]',
    help: 'go on with a kept conversation, the newest by default',
    run: (state, id, say) => {
      goOn(state, keptOf(state).resume(id === '' ? undefined : id), `chat ${keptOf(state).id}`, say);
      return undefined;
    },
  },
  {
    name: 'forget',
    argument: 'ID',
    help: 'delete a kept conversation',
    run: (state, id, say) => {
      keptOf(state).forget(required(id, 'forget', 'the id of a kept chat, which /chats lists'));
      say(`${id} is deleted`);
      return undefined;
    },
  },
  {
    name: 'save',
    argument: 'FILE',
    help: 'write the conversation to a file',
    run: (state, path, say) => {
      saveChat(required(path, 'save', 'the name of a file'), state);
      say(`saved in ${path}`);
      return undefined;
    },
  },
  {
    name: 'load',
    argument: 'FILE',
    help: 'continue a saved conversation',
    run: (state, path, say) => {
      const chat = loadChat(required(path, 'load', 'the name of a file'));
      state.kept?.begin();
      goOn(state, chat, path, say);
      return undefined;
    },
  },
];

/** Replaces the conversation so far with another one. */
export function goOn(state: ChatState, chat: SavedChat, from: string, say: Say): void {
  const { conversation, settings, model } = chat;
  Object.assign(state, { conversation, settings });
  const other = model === state.model ? '' : `, with another model (it was ${model})`;
  say(`${conversation.turns.length} messages from ${from}${other}`);
  const last = conversation.turns.at(-1);
  if (last !== undefined) say(`${last.role}: ${shown(last.content)}`);
}

function shown(content: unknown): string {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  return text.length <= MAX_SHOWN ? text : `... ${plainLine(text.slice(-MAX_SHOWN), MAX_SHOWN)}`;
}

function keptOf({ kept }: ChatState): KeptChats {
  if (kept !== null) return kept;
  throw new UsageError('This chat keeps nothing: conversations are kept in a terminal without --no-history.');
}

function required(argument: string, name: string, what: string): string {
  if (argument !== '') return argument;
  throw new UsageError(`/${name} needs ${what}.`);
}
