import { Option as Flag } from 'commander';
import { GROUPS, type Group } from '../../callbacks/options/option.js';
import {
  defaultText,
  flagName,
  metavarOf,
  type Option,
  type OptionName,
  optionOf,
  variableName,
} from './table.js';

/** An option whose values are checked in our own words, and known to the completion of shells. */
export class ListedOption extends Flag {
  values: readonly string[] = [];
}

/** What stands over the options that most want to know. */
const COMMON = 'Common options:';

/** Options as flags of a command, in groups: the common ones first. */
export function flagsInGroups(options: readonly Option[]): Flag[] {
  const isCommon = ({ flag }: Option) => flag.isCommon ?? false;
  const inGroup = (group: Group) => options.filter((one) => one.flag.group === group && !isCommon(one));
  return [
    ...options.filter(isCommon).flatMap(({ name }) => flagsOf(name, COMMON)),
    ...GROUPS.flatMap((group) => inGroup(group).flatMap(({ name }) => flagsOf(name, `${group}:`))),
  ];
}

/** An option as flags of a command: two for a switch, and hidden ones for its aliases. */
export function flagsOf(name: OptionName, heading?: string): Flag[] {
  const option = optionOf(name);
  const named = flagsNamed(name, option);
  const aliases = (option.flag.aliases ?? []).flatMap((alias) => flagsNamed(alias, option));
  const all = [...named, ...aliases.map((flag) => flag.hideHelp())];
  if (heading !== undefined) for (const flag of all) flag.helpGroup(heading);
  return all;
}

function flagsNamed(name: string, option: Option): Flag[] {
  const help = helpOf(option);
  const { kind, choices = [] } = option.values;
  if (kind === 'switch') {
    return [new Flag(`--${flagName(name)}`, help), new Flag(`--no-${flagName(name)}`).hideHelp()];
  }
  const flag = new ListedOption(`--${flagName(name)} <${metavarOf(option)}>`, help);
  flag.values = choices;
  return [kind === 'list' ? flag.argParser(gathered) : flag];
}

function helpOf(option: Option): string {
  const { values, flag, name } = option;
  // Where the metavar does not list the values already.
  const choices =
    values.choices === undefined || flag.metavar === undefined ? '' : `; one of ${values.choices.join(', ')}`;
  return `${flag.help}${choices} (${variableName(name)}; default: ${defaultText(option)})`;
}

/** For an option that may be given several times. */
export function gathered(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}
