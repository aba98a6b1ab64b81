import { closestName } from '../../base/did-you-mean.js';
import { MAX_INT32 } from '../../base/int32.js';
import { rangeText } from '../../base/option-values.js';
import { inShownOrder, shownBounds } from '../../callbacks/request/parameter.js';
import { NAMED_PARAMETERS } from '../../callbacks/request/parameters.js';
import { UsageError } from '../errors/user-errors.js';
import { fieldOfFlag } from '../request-vocabulary.js';

/** Settings of how an answer is drawn, by the names of the API's fields. */
export type SamplingSettings = Readonly<Record<string, number | readonly string[]>>;

/** One such setting, as users of the terminal know it. */
export interface SamplingSetting {
  /** Flag without its dashes, which is also the name for /set in a chat. */
  name: string;
  /** Field of the API's request. */
  field: string;
  metavar: string;
  help: string;
  /** Range of a number. Absent: the setting takes a text, and may be given several times. */
  range?: { min: number; max: number; integer: boolean };
}

function settingsOfParameters(): Omit<SamplingSetting, 'field'>[] {
  return inShownOrder(NAMED_PARAMETERS).flatMap(({ flag, parameter }) => {
    if (flag === null) return [];
    const { metavar, help, range = shownBounds(parameter)! } = parameter.flag!;
    const [min, max] = range;
    return { name: flag, metavar, help, range: { min, max, integer: parameter.kind !== 'number' } };
  });
}

const SETTINGS: readonly Omit<SamplingSetting, 'field'>[] = [
  ...settingsOfParameters(),
  {
    name: 'max-tokens',
    metavar: 'N',
    help: 'longest answer (default: the rest of the context, at most --default-max-tokens of serve)',
    range: { min: 1, max: MAX_INT32, integer: true },
  },
  {
    name: 'stop',
    metavar: 'TEXT',
    help: 'a text that ends the answer; may be repeated',
  },
];

export const SAMPLING_SETTINGS: readonly SamplingSetting[] = SETTINGS.map((setting) => ({
  ...setting,
  field: fieldOfFlag(setting.name),
}));

/** The setting of a name, written with - or with _. @throws UsageError that names the one probably meant, or all. */
export function settingOf(name: string): SamplingSetting {
  const written = name.replaceAll('_', '-').toLowerCase();
  const setting = SAMPLING_SETTINGS.find((one) => one.name === written);
  if (setting !== undefined) return setting;
  const names = SAMPLING_SETTINGS.map((one) => one.name);
  const meant = closestName(written, names);
  const hint = meant === null ? `settings: ${names.join(', ')}.` : `did you mean ${meant}?`;
  throw new UsageError(`There is no setting ${name}; ${hint}`);
}

/** Value of a setting as a user wrote it. @param where how it was written, for the error. @throws UsageError. */
export function settingValue({ range }: SamplingSetting, text: string, where: string): number | string {
  if (range === undefined) {
    if (text !== '') return text;
    throw new UsageError(`${where} is empty; it must be a text.`);
  }
  const value = text.trim() === '' ? Number.NaN : Number(text);
  const { min, max, integer } = range;
  if (value >= min && value <= max && (!integer || Number.isInteger(value))) return value;
  throw new UsageError(`${where} is ${JSON.stringify(text)}; it must be ${rangeText(range)}.`);
}

/** The settings among a command's flags, by commander's names. @throws UsageError. */
export function settingsOfFlags(flags: Readonly<Record<string, unknown>>): SamplingSettings {
  const settings: Record<string, number | string[]> = {};
  for (const setting of SAMPLING_SETTINGS) {
    const given = flags[setting.name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())];
    if (given === undefined) continue;
    const where = `--${setting.name}`;
    settings[setting.field] = Array.isArray(given)
      ? given.map((text: string) => String(settingValue(setting, text, where)))
      : (settingValue(setting, String(given), where) as number);
  }
  return settings;
}
