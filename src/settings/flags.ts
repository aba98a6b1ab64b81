import { Option as Flag } from 'commander';
import { GROUPS, type Group } from '../../callbacks/options/option.js';
import {
  defaultText,
  flagName,
  metavarOf,
  type Option,
  type OptionName,
  oneOfThese,
  optionOf,
  variableName,
} from '../options/table.js';

/** A flag whose values are checked in this project's own words, and listed for the completion of shells. */
export class ListedOption extends Flag {
  values: readonly string[] = [];
}

/** Heading of the options most often wanted. */
const COMMON = 'Common options:';

/** Flags of options, in groups: the common ones first. */
export function flagsInGroups(options: readonly Option[]): Flag[] {
  const isCommon = ({ flag }: Option) => flag.isCommon ?? false;
  const inGroup = (group: Group) => options.filter((one) => one.flag.group === group && !isCommon(one));
  return [
    ...options.filter(isCommon).flatMap((option) => flagsUnder(COMMON, option)),
    ...GROUPS.flatMap((group) => inGroup(group).flatMap((option) => flagsUnder(`${group}:`, option))),
  ];
}

/** Flags of one option: two for a switch, and hidden ones for its aliases. */
export function flagsOf(name: OptionName, heading?: string): Flag[] {
  const option = optionOf(name);
  return heading === undefined ? allFlags(option) : flagsUnder(heading, option);
}

function flagsUnder(heading: string, option: Option): Flag[] {
  const all = allFlags(option);
  for (const flag of all) flag.helpGroup(heading);
  return all;
}

function allFlags(option: Option): Flag[] {
  const named = flagsNamed(option.name, option);
  // Lists of vLLM take several values after one flag.
  const aliases = (option.flag.aliases ?? []).flatMap((alias) => flagsNamed(alias, option, '...'));
  return [...named, ...aliases.map((flag) => flag.hideHelp())];
}

function flagsNamed(name: string, option: Option, more = ''): Flag[] {
  const help = helpOf(option);
  const { kind, choices = [] } = option.values;
  if (kind === 'switch') {
    return [new Flag(`--${flagName(name)}`, help), new Flag(`--no-${flagName(name)}`).hideHelp()];
  }
  const isList = kind === 'list';
  const flag = new ListedOption(`--${flagName(name)} <${metavarOf(option)}${isList ? more : ''}>`, help);
  flag.values = choices;
  return [isList ? flag.argParser(gathered) : flag];
}

function helpOf(option: Option): string {
  const { values, flag, name } = option;
  // The values are listed unless the metavar does so already.
  const choices = flag.metavar === undefined ? '' : oneOfThese(values.choices);
  const units = flag.unit === 'bytes' ? ' A unit is understood: 1.5GB.' : '';
  return `${flag.help}${choices}${units} (${variableName(name)}; default: ${defaultText(option)})`;
}

/** Collects the values of an option that may be given several times. */
export function gathered(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}
