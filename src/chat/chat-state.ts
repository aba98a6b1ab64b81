import type { SamplingSettings } from '../asking/sampling-settings.js';
import type { AskedModel } from './chat-file.js';
import type { ChatTools } from './chat-tools.js';
import type { Conversation } from './conversation.js';
import type { KeptChats } from './kept-chats.js';

/** State of a chat that commands work on. */
export interface ChatState {
  /** Name of the model that answers. */
  model: string;
  /** How this model was asked for. */
  asked: AskedModel;
  conversation: Conversation;
  settings: SamplingSettings;
  readonly tools: ChatTools;
  /** Where conversations are kept; null: nowhere. */
  readonly kept: KeptChats | null;
  /** A line about the last answer; null before the first. */
  lastStats: string | null;
  /** Names that useModel takes and that are known. */
  models(): Promise<readonly string[]>;
  /**
   * Has another model answer from now on.
   * @throws as loading or connecting; the chat then keeps the one that it has
   */
  useModel(name: string): Promise<void>;
}

/** Next step after a command: the next message, another answer to the last question, or the end. */
export type AfterCommand = 'next' | 'ask' | 'leave';

export type Say = (line: string) => void;

/**
 * A command of a chat. It reports what it did, and the chat continues with the next message unless it returns
 * another step.
 */
export interface ChatCommand {
  name: string;
  argument: string;
  help: string;
  /** @throws UsageError, ChatFileError, and as loading a model; the chat is then unchanged */
  run(
    state: ChatState,
    argument: string,
    say: Say,
  ): AfterCommand | undefined | Promise<AfterCommand | undefined>;
}
