import type { Command, CommanderError } from 'commander';
import { hintOf } from '../../base/did-you-mean.js';
import { asClause } from '../../base/sentences.js';
import { refusalOfFlag } from '../options/old-names.js';

/** Flags by which one command calls what another has too. */
const SYNONYMS: Readonly<Record<string, string>> = {
  '--lora': '--adapter',
  '--lora-modules': '--adapter',
  '--adapter': '--lora',
};

/** Commander's sentence, with a list of the options where it suggests none. */
export function usageMessage(error: CommanderError, root: Command): string {
  const message = error.message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' ');
  const command = root.commands.find((candidate) => candidate.name() === process.argv[2]) ?? root;
  const typed = /'(-[^']*)'/.exec(message)?.[1] ?? '';
  if (error.code === 'commander.unknownOption') {
    const refusal = refusalOfFlag(
      typed,
      command.options.map(({ long }) => long ?? ''),
    );
    if (refusal !== null) return refusal;
  }
  const visible = command.options.filter((option) => !option.hidden).map((option) => option.long ?? '');
  const synonym = SYNONYMS[typed.replace(/=.*$/s, '')];
  if (error.code === 'commander.unknownOption' && synonym !== undefined && visible.includes(synonym)) {
    return `Unknown option '${typed}'; did you mean ${synonym}?`;
  }
  const sentence = message.charAt(0).toUpperCase() + message.slice(1);
  if (message.includes('Did you mean'))
    return sentence.replace(/ \(Did you mean (.*)\?\)$/, '; did you mean $1?');
  if (error.code === 'commander.unknownCommand' || error.code === 'commander.help') {
    return `${sentence}; commands: ${root.commands.map((command) => command.name()).join(', ')}.`;
  }
  // Some sentences of commander end with a full stop, others do not.
  if (error.code !== 'commander.unknownOption') {
    return `${asClause(sentence)}. See skein ${command.name()} --help.`;
  }
  return `${sentence}; ${hintOf(typed, visible, `skein ${command.name()} --help`)}`;
}

/**
 * The arguments as they are parsed. Commander shows a whole help where the name in `skein help NAME` or
 * `skein bench NAME --help` is unknown; without the help in it, either ends as it does without: with a
 * sentence.
 */
export function argumentsOf(root: Command): string[] {
  const given = process.argv.slice(2);
  const [first, second] = given;
  if (second === undefined || second.startsWith('-')) return given;
  if (first === 'help' && second !== 'help' && !isCommandOf(root, second)) return [second];
  if (first === 'bench' && /^[a-z]+$/.test(second) && second !== 'help') {
    const bench = root.commands.find((command) => command.name() === 'bench')!;
    if (!isCommandOf(bench, second)) return given.filter((one) => one !== '--help' && one !== '-h');
  }
  return given;
}

function isCommandOf({ commands }: Command, name: string): boolean {
  return commands.some((command) => command.name() === name);
}
