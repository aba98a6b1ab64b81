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
  refuseBoth(options as ChatSessionOptions, ['messages', 'saved'], 'saved', 'what was said before');
}

/** @throws InvalidRequestError as checkChatOptions */
export function checkSendOptions(options: unknown): asserts options is SendOptions {
  check('send', '{ maxTokens: 100 }', options, SEND_RULES);
  refuseBoth(options as SendOptions, ['object', 'guided'], 'object', 'the form of the answer');
}

/** @throws InvalidRequestError for what is no text, list of parts or of results; readMessages checks the parts, withResults the results */
export function checkChatInput(input: unknown): void {
  if (typeof input === 'string' || Array.isArray(input)) return;
  if (isObject(input) && Array.isArray(input.results) && Object.keys(input).length === 1) return;
  throw new InvalidRequestError(
    "A turn needs a text, a list of parts such as { type: 'text', text }, or { results: [{ id, result }] }.",
    'input',
  );
}

function refuseBoth<Options>(
  options: Options,
  [one, other]: readonly [keyof Options & string, keyof Options & string],
  param: string,
  what: string,
): void {
  if (options[one] === undefined || options[other] === undefined) return;
  throw new InvalidRequestError(`${one} and ${other} exclude each other: both are ${what}.`, param);
}

function check<Options>(call: string, example: string, options: unknown, rules: Rules<Options>): void {
  const fault = optionFault(call, example, options, rules);
  if (fault !== null) throw new InvalidRequestError(fault.message, fault.option);
}
