import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { closestName } from '../../base/did-you-mean.js';
import type { Asker } from '../asking/asker.js';
import { settingsOfFlags } from '../asking/sampling-settings.js';
import type { AskedModel, SavedChat } from '../chat/chat-file.js';
import { stateDirectory } from '../chat/chat-history.js';
import { Conversation } from '../chat/conversation.js';
import { KeptChats } from '../chat/kept-chats.js';
import { UsageError } from '../errors/user-errors.js';
import { hubSettings } from '../hub/settings.js';
import { storedModels } from '../hub/stored-models.js';
import { DEMO_MODEL_NAME } from '../settings/demo-model.js';
import { type AskingFlags, askerOf, type OpenAsker } from './asking-command.js';

export interface ChatFlags extends AskingFlags {
  history?: boolean;
  verbose?: boolean;
  markdown?: boolean;
  tools?: readonly string[];
  /** true: the newest. */
  resume?: string | true;
  list?: boolean;
}

/** The folder of the chats that are kept. */
export function keptChats(onProblem: (problem: string) => void): KeptChats {
  return new KeptChats(join(stateDirectory(), 'chats'), onProblem);
}

/** A conversation to begin or to continue, and how its model is opened. */
export interface OpenedChat {
  chat: SavedChat & { asked: AskedModel };
  /** true: it was kept. */
  isResumed: boolean;
  open: OpenAsker;
}

/**
 * The conversation that the flags name. What they say of the model and its settings goes before what is kept with a chat.
 * @throws UsageError, ChatFileError
 */
export function openedChat(flags: ChatFlags, kept: KeptChats): OpenedChat {
  const settings = settingsOfFlags(flags);
  const { resume, system } = flags;
  if (resume === undefined) {
    const conversation = new Conversation(system ?? null);
    return {
      chat: { model: '', settings, conversation, asked: askedBy(flags) },
      isResumed: false,
      open: askerOf(flags),
    };
  }
  const before = kept.resume(resume === true ? undefined : resume);
  if (system !== undefined) before.conversation.system = system;
  const namesModel = flags.model !== undefined || flags.url !== undefined || flags.config !== undefined;
  const named: ChatFlags = namesModel ? flags : { ...flags, ...before.asked };
  const chat = { ...before, settings: { ...before.settings, ...settings }, asked: askedBy(named) };
  return { chat, isResumed: true, open: askerOf(named) };
}

function askedBy({ model, url }: AskingFlags): AskedModel {
  if (url !== undefined) return { url, ...(model !== undefined && { model }) };
  return model === undefined ? {} : { model: existsSync(model) ? resolve(model) : model };
}

/** Names of the models that a chat can continue with. */
export function modelsBeside(asker: Asker, { url }: AskedModel): readonly string[] {
  if (url !== undefined) return asker.models;
  return [DEMO_MODEL_NAME, ...storedModels(hubSettings().cacheFolder).map(({ id }) => id)];
}

/** How another model is opened, and what the chat then says of it. @throws UsageError */
export function otherModel(
  name: string,
  asker: Asker,
  flags: ChatFlags,
  { url }: AskedModel,
): { asked: AskedModel; open: OpenAsker } {
  if (url !== undefined && !asker.models.includes(name)) {
    const meant = closestName(name, asker.models);
    const hint = meant === null ? '/model lists those that are there.' : `did you mean ${meant}?`;
    throw new UsageError(`The server has no model ${name}; ${hint}`);
  }
  // An adapter is one of the model that was named with it.
  const { adapter: _, model: __, url: ___, ...others } = flags;
  const isDemo = url === undefined && name === DEMO_MODEL_NAME;
  const named = { ...others, ...(url !== undefined && { url }), ...(isDemo ? {} : { model: name }) };
  return { asked: askedBy(named), open: askerOf(named) };
}
