import { type Command, Option } from 'commander';
import type { Asker } from '../asking/asker.js';
import { SAMPLING_SETTINGS } from '../asking/sampling-settings.js';
import { serverAddress } from '../asking/server-address.js';
import { UsageError } from '../errors/user-errors.js';
import { flagName, OPTIONS } from '../options/table.js';
import { loadConfig } from '../settings/config.js';
import { flagsOf, gathered } from '../settings/flags.js';
import { checkInstructionSet } from '../settings/instruction-set-variable.js';

/**
 * Options of the engine that are flags of commands which ask one model. Others can be given by variable or --config.
 */
const OF_ENGINE = OPTIONS.filter(({ flag }) => flag.isForAsking).map(({ name }) => name);

/** Names of these options, with their aliases. */
const CALLED = OPTIONS.filter(({ flag }) => flag.isForAsking).flatMap(({ name, flag }) => [
  name,
  ...(flag.aliases ?? []),
]);

/** Flags of run and chat, besides those of OF_ENGINE and of SAMPLING_SETTINGS. */
export interface AskingFlags {
  model?: string;
  adapter?: string;
  url?: string;
  apiKey?: string;
  config?: string;
  system?: string;
  [other: string]: unknown;
}

/** Adds the options for naming, loading and asking a model to a command. */
export function defineAsking(command: Command): void {
  command
    .option(
      '-m, --model <MODEL>',
      'the model, in every form that serve --model takes; with --url, its name on that server (default: the demo model)',
    )
    .addOption(
      new Option(
        '--adapter <PATH>',
        'a LoRA adapter of the model, in every form that serve --lora takes (with --url, --model names it)',
      ).argParser(onlyOne('--adapter')),
    )
    .option('--url <URL>', 'ask a running server with the OpenAI API instead of loading a model')
    .option('--api-key <KEY>', 'API key for the server of --url (SKEIN_API_KEY)')
    .option('--system <TEXT>', 'system message: instructions before the conversation');
  for (const { name, metavar, help, range } of SAMPLING_SETTINGS) {
    const option = new Option(`--${name} <${metavar}>`, help);
    command.addOption(range === undefined ? option.argParser(gathered) : option);
  }
  for (const name of OF_ENGINE) {
    for (const option of flagsOf(name, 'Options of the engine:')) command.addOption(option);
  }
  command.addOption(
    new Option('--config <FILE>', 'JSON or YAML file with options of the engine (SKEIN_CONFIG)'),
  );
}

/** Takes a value that is given once. A second one would be dropped in silence. @throws UsageError */
function onlyOne(flag: string): (value: string, before: string | undefined) => string {
  return (value, before) => {
    if (before === undefined) return value;
    throw new UsageError(`${flag} is given twice, as ${before} and as ${value}; one is asked at a time.`);
  };
}

/**
 * Loads the model or connects to the server that the flags name; the flags were checked before. @throws as loadAsker
 * and connectAsker.
 */
export type OpenAsker = (signal: AbortSignal) => Promise<Asker>;

/** Makes the function that loads the model, or connects to the server, that the flags name. @throws UsageError. */
export function askerOf(flags: AskingFlags): OpenAsker {
  return flags.url === undefined ? embedded(flags) : remote(flags, flags.url);
}

function embedded({ model, adapter, config: file, ...flags }: AskingFlags): OpenAsker {
  if (flags.apiKey !== undefined) throw new UsageError('--api-key is for a server, and no --url names one.');
  checkInstructionSet(process.env.SKEIN_ISA);
  if (adapter?.trim() === '') throw new UsageError('--adapter is empty; a path is expected, or NAME=PATH.');
  const ofEngine = Object.fromEntries(CALLED.map((name) => [name, flags[name]]));
  const config = loadConfig({
    flags: {
      ...ofEngine,
      ...(model === undefined ? {} : { model: [model] }),
      ...(adapter === undefined ? {} : { lora: [adapter] }),
    },
    environment: process.env,
    file,
    called: { lora: '--adapter' },
  });
  return async (signal) => {
    const { loadAsker } = await import('./embedded-asker.js');
    return loadAsker(config, signal);
  };
}

function remote(flags: AskingFlags, url: string): OpenAsker {
  const engine = ['adapter', ...CALLED].find((name) => flags[name] !== undefined);
  if (engine !== undefined || flags.config !== undefined) {
    const flag = engine === undefined ? '--config' : `--${flagName(engine)}`;
    throw new UsageError(`${flag} is for a model that is loaded here, and --url asks one that runs already.`);
  }
  const options = {
    address: serverAddress(url, '--url'),
    apiKey: clientKey(flags.apiKey),
    model: flags.model,
  };
  return async (signal) => {
    const { connectAsker } = await import('../asking/remote-asker.js');
    return connectAsker(options, signal);
  };
}

/** The API key to send: a server takes several keys from the variable; a client sends the first. */
export function clientKey(flag: string | undefined): string | undefined {
  const key = flag ?? process.env.SKEIN_API_KEY?.split(',')[0]?.trim();
  return key === '' ? undefined : key;
}
