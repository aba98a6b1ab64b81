import { closestName } from '../../base/did-you-mean.js';
import {
  SAMPLING_SETTINGS,
  type SamplingSettings,
  settingOf,
  settingValue,
} from '../asking/sampling-settings.js';
import { UsageError } from '../errors/user-errors.js';
import type { AfterCommand, ChatCommand, ChatState, Say } from './chat-state.js';
import { KEPT_COMMANDS } from './kept-commands.js';

const COMMANDS: readonly ChatCommand[] = [
  {
    name: 'help',
    argument: '',
    help: 'show this list',
    run: (_, __, say) => {
      for (const line of chatHelp()) say(line);
      return undefined;
    },
  },
  {
    name: 'reset',
    argument: '',
    help: 'begin a new conversation',
    run: (state, _, say) => {
      state.conversation.reset();
      state.kept?.begin();
      say('a new conversation');
      return undefined;
    },
  },
  {
    name: 'system',
    argument: '[TEXT]',
    help: 'show or set the system message; "none" removes it',
    run: ({ conversation }, text, say) => {
      if (text !== '') conversation.system = text === 'none' ? null : text;
      say(conversation.system === null ? 'no system message' : `system: ${conversation.system}`);
      return undefined;
    },
  },
  {
    name: 'set',
    argument: '[NAME [VALUE]]',
    help: `show the settings, or change one: ${SAMPLING_SETTINGS.map(({ name }) => name).join(', ')}; without a value the setting returns to its default`,
    run: (state, argument, say) => {
      if (argument !== '') state.settings = changed(state.settings, argument);
      const shown = Object.entries(state.settings).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
      say(shown.length === 0 ? 'nothing is set: the model answers as it does by itself' : shown.join(', '));
      return undefined;
    },
  },
  {
    name: 'model',
    argument: '[NAME]',
    help: 'list the models that are here, or go on with another one',
    run: async (state, name, say) => {
      if (name !== '') {
        await state.useModel(name);
        return undefined;
      }
      const others = (await state.models()).filter((one) => one !== state.asked.model && one !== state.model);
      for (const line of [`* ${state.model}`, ...others.map((one) => `  ${one}`)]) say(line);
      return undefined;
    },
  },
  {
    name: 'tools',
    argument: '[NAME|on|off]',
    help: 'list the functions of --tools, or turn one or all on or off',
    run: ({ tools }, name, say) => {
      if (name !== '') tools.turn(name);
      for (const line of tools.lines) say(line);
      return undefined;
    },
  },
  ...KEPT_COMMANDS,
  {
    name: 'retry',
    argument: '',
    help: 'answer the last question again',
    run: ({ conversation }) => {
      if (conversation.retry()) return 'ask';
      throw new UsageError('There is no answer yet to ask for once more.');
    },
  },
  {
    name: 'stats',
    argument: '',
    help: 'show the time and tokens of the last answer',
    run: ({ lastStats }, _, say) => {
      say(lastStats ?? 'nothing was answered yet');
      return undefined;
    },
  },
  { name: 'exit', argument: '', help: 'leave the chat, as Ctrl-D does', run: () => 'leave' },
];

/** Other words for /exit. */
const EXITS: ReadonlySet<string> = new Set(['quit', 'bye', 'q']);

/** Names of the commands, for the Tab key. */
export const COMMAND_NAMES: readonly string[] = COMMANDS.map(({ name }) => `/${name}`);

/** Text of /help, by lines. */
export function chatHelp(): string[] {
  const heads = COMMANDS.map(({ name, argument }) => `/${name} ${argument}`.trimEnd());
  const width = Math.max(...heads.map((head) => head.length));
  return [
    ...COMMANDS.map(({ help }, index) => `${heads[index]!.padEnd(width)}  ${help}`),
    'A line that ends in \\ continues on the next line, """ begins and ends a message of several lines, //text sends /text.',
    'Ctrl-C stops an answer; pressed twice at the prompt it leaves the chat.',
  ];
}

/** True where a message is a command: it begins with one slash. */
export function isChatCommand(message: string): boolean {
  return /^\/(?!\/)/.test(message);
}

/** Runs a command. @throws as ChatCommand.run; the chat is then unchanged. */
export async function runChatCommand(state: ChatState, message: string, say: Say): Promise<AfterCommand> {
  const [, name = '', argument = ''] = /^\/(\S*)\s*([\s\S]*)$/.exec(message.trimEnd()) ?? [];
  const known = EXITS.has(name) ? 'exit' : name;
  const command = COMMANDS.find((one) => one.name === known);
  if (command !== undefined) return (await command.run(state, argument, say)) ?? 'next';
  const names = COMMANDS.map((one) => one.name);
  const meant = closestName(name, names);
  throw new UsageError(
    `There is no /${name}; ${meant === null ? `commands: ${COMMAND_NAMES.join(', ')}.` : `did you mean /${meant}?`}`,
  );
}

function changed(settings: SamplingSettings, argument: string): SamplingSettings {
  const [, name = '', text = ''] = /^(\S+)\s*([\s\S]*)$/.exec(argument) ?? [];
  const setting = settingOf(name);
  const { [setting.field]: _, ...others } = settings;
  if (text === '') return others;
  const value = settingValue(setting, text, setting.name);
  return { ...others, [setting.field]: typeof value === 'string' ? [value] : value };
}
