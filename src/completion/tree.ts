import type { Argument, Command, Option } from 'commander';
import { ListedOption } from '../options/flags.js';

/** What a shell needs to know of a command, read from commander's own definition of it. */
export interface CompletionCommand {
  /** The command with those above it, but without the program's own name: '', 'bench', 'bench compare'. */
  path: string;
  name: string;
  description: string;
  options: CompletionOption[];
  /** What stands in the place of its arguments. */
  argument: CompletionValue;
  commands: CompletionCommand[];
}

export interface CompletionOption {
  long: string;
  short: string | null;
  description: string;
  /** null: it takes no value. */
  value: CompletionValue | null;
}

export interface CompletionValue {
  /** The values, where there are only some. */
  values: readonly string[];
  isFile: boolean;
}

/** A name of a value in --help that stands for a path. */
const OF_FILES = /\b(FILE|DIR|PATH|MODEL)\b|\.jsonl?\b/;
const DESCRIPTION_LENGTH = 72;

/** The program with all its commands; what is hidden in --help is hidden here. */
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

/** A command and all below it. */
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

/** The first of several arguments that a shell can say anything about stands for all. */
function argumentOf(args: readonly Argument[]): CompletionValue {
  const values = args.flatMap(({ argChoices }) => argChoices ?? []);
  return { values, isFile: args.some((argument) => OF_FILES.test(argument.name())) };
}

const metavar = (flags: string) => /<([^>]*)>/.exec(flags)?.[1] ?? '';

/** The beginning of a help text, without the variable and the default behind it. */
function shortened(text: string): string {
  const line = text
    .replace(/ \((SKEIN_|default)[^)]*\)$/, '')
    .split(/[;:]/, 1)[0]!
    .trim();
  return line.length <= DESCRIPTION_LENGTH ? line : `${line.slice(0, DESCRIPTION_LENGTH - 1).trimEnd()}…`;
}
