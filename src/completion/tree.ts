import type { Argument, Command, Option } from 'commander';
import { ListedOption } from '../settings/flags.js';

/** Facts about a command that shells need, read from commander's definition. */
export interface CompletionCommand {
  /** Path of the command below the program's name: '', 'bench', 'bench compare'. */
  path: string;
  name: string;
  description: string;
  options: CompletionOption[];
  /** Values of its arguments. */
  argument: CompletionValue;
  commands: CompletionCommand[];
}

export interface CompletionOption {
  long: string;
  short: string | null;
  description: string;
  /** Value that the option takes; null: none. */
  value: CompletionValue | null;
}

export interface CompletionValue {
  /** All values, where there are only some. */
  values: readonly string[];
  isFile: boolean;
}

/** Names of values in --help that stand for a path. */
const OF_FILES = /\b(FILE|DIR|PATH|MODEL)\b|\.jsonl?\b/;
const DESCRIPTION_LENGTH = 72;

/** Tree of all commands of the program, without those hidden in --help. */
export function completionTree(command: Command, above = ''): CompletionCommand {
  const isRoot = command.parent === null;
  const path = isRoot ? '' : `${above} ${command.name()}`.trim();
  const help: CompletionOption = { long: '--help', short: '-h', description: 'show help', value: null };
  return {
    path,
    name: command.name(),
    description: shortened(command.description()),
    options: [...command.options.filter(({ hidden }) => !hidden).map(optionOf), help],
    argument: argumentOf(command.registeredArguments),
    commands: command.commands.map((one) => completionTree(one, path)),
  };
}

/** The command and all commands below it. */
export function allCommands(command: CompletionCommand): CompletionCommand[] {
  return [command, ...command.commands.flatMap(allCommands)];
}

function optionOf(option: Option): CompletionOption {
  const { long, short, description, flags } = option;
  const takesValue = option.required || option.optional;
  return {
    long: long!,
    short: short ?? null,
    description: shortened(description),
    value: takesValue ? { values: valuesOf(option), isFile: OF_FILES.test(metavar(flags)) } : null,
  };
}

function valuesOf(option: Option): readonly string[] {
  const listed = option instanceof ListedOption ? option.values : [];
  if (listed.length > 0) return listed;
  if (option.argChoices !== undefined) return option.argChoices;
  const written = metavar(option.flags);
  return written.includes('|') ? written.split('|') : [];
}

/** Values of a command's arguments: those of the first argument with known values stand for all. */
function argumentOf(args: readonly Argument[]): CompletionValue {
  const values = args.flatMap(({ argChoices }) => argChoices ?? []);
  return { values, isFile: args.some((argument) => OF_FILES.test(argument.name())) };
}

const metavar = (flags: string) => /<([^>]*)>/.exec(flags)?.[1] ?? '';

/** Beginning of a help text, without the variable and the default after it. */
function shortened(text: string): string {
  const line = text
    .replace(/ \((SKEIN_|default)[^)]*\)$/, '')
    .split(/[;:]/, 1)[0]!
    .trim();
  return line.length <= DESCRIPTION_LENGTH ? line : `${line.slice(0, DESCRIPTION_LENGTH - 1).trimEnd()}…`;
}
