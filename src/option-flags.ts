import { Option } from 'commander';
import { flagName, OPTIONS, type OptionName, type OptionSpec, variableName } from './config-options.js';

/** An option whose values are checked in our own words, and known to the completion of shells. */
export class ListedOption extends Option {
  values: readonly string[] = [];
}

/** An option of the engine or the server as flags of a command: two for a switch. */
export function flagsOf(name: OptionName): Option[] {
  const spec: OptionSpec = OPTIONS[name];
  const preset = spec.defaultText === null ? '' : `; default: ${spec.defaultText}`;
  // Where the metavar does not list the values already.
  const isListed = spec.choices === undefined || spec.metavar === spec.choices.join('|');
  const choices = isListed ? '' : `; one of ${spec.choices?.join(', ')}`;
  const help = `${spec.help}${choices} (${variableName(name)}${preset})`;
  const withValue = () => {
    const option = new ListedOption(`--${flagName(name)} <${spec.metavar}>`, help);
    option.values = spec.choices ?? [];
    return option;
  };
  if (spec.kind === 'list') return [withValue().argParser(gathered)];
  if (spec.kind !== 'switch') return [withValue()];
  return [new Option(`--${flagName(name)}`, help), new Option(`--no-${flagName(name)}`).hideHelp()];
}

/** For an option that may be given several times. */
export function gathered(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}
