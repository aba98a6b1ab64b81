import { COUNT, isObject, oneOf, rule, TEXT, wholeNumber } from '../../../base/option-values.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import { optionFault, type Rules } from '../../options/option-faults.js';
import {
  type ChatSessionOptions,
  type ChatSettings,
  OF_OTHER_CALLS,
  type SendOptions,
} from '../chat/chat-types.js';
import { GENERATE_RULES } from './generate-options.js';

const ELSEWHERE: ReadonlySet<string> = new Set(OF_OTHER_CALLS);
const SETTINGS = Object.fromEntries(
  Object.entries(GENERATE_RULES).filter(([name]) => !ELSEWHERE.has(name)),
) as unknown as Rules<ChatSettings>;

const CHAT_RULES: Rules<ChatSessionOptions> = {
  ...SETTINGS,
  system: TEXT,
  messages: rule('a list of messages', Array.isArray),
  // loadedMessages checks it.
  saved: rule('what save() of a chat returned', () => true),
  // readyTools checks each.
  tools: rule(
    'an object of names and tools, such as { get_time: tool({ execute: () => new Date() }) }',
    isObject,
  ),
  whenFull: oneOf('drop', 'summarise', 'refuse'),
  // Each asks the model once more.
  maxRounds: wholeNumber(0, 1024),
  maxParallelCalls: COUNT,
  maxResultLength: COUNT,
};

const SEND_RULES: Rules<SendOptions> = {
  ...SETTINGS,
  object: rule(
    'a schema, such as zod makes, or a JSON schema',
    (value) => isObject(value) || typeof value === 'function',
  ),
  signal: GENERATE_RULES.signal,
};

/** @throws InvalidRequestError for an unknown option, or a value that an option does not take */
export function checkChatOptions(options: unknown): asserts options is ChatSessionOptions {
  check('chat', "{ system: 'Be brief.' }", options, CHAT_RULES);
  const { messages, saved } = options as ChatSessionOptions;
  if (messages !== undefined && saved !== undefined)
    throw new InvalidRequestError(
      'messages and saved exclude each other: both are what was said before.',
      'saved',
    );
}

/** @throws InvalidRequestError as checkChatOptions */
export function checkSendOptions(options: unknown): asserts options is SendOptions {
  check('send', '{ maxTokens: 100 }', options, SEND_RULES);
  const { object, guided } = options as SendOptions;
  if (object !== undefined && guided !== undefined)
    throw new InvalidRequestError(
      'object and guided exclude each other: both are the form of the answer.',
      'object',
    );
}

/** @throws InvalidRequestError for what is no text and no list of parts; readMessages checks the parts */
export function checkChatInput(input: unknown): void {
  if (typeof input === 'string' || Array.isArray(input)) return;
  throw new InvalidRequestError(
    "A turn needs a text, or a list of parts such as { type: 'text', text }.",
    'input',
  );
}

function check<Options>(call: string, example: string, options: unknown, rules: Rules<Options>): void {
  const fault = optionFault(call, example, options, rules);
  if (fault !== null) throw new InvalidRequestError(fault.message, fault.option);
}
